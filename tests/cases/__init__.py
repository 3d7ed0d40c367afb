"""What users ran into, each as a transcript that is played on the broker in virtual time."""
