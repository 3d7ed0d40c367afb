cimport cython

cdef int MAX_DIGITS

@cython.locals(length=Py_ssize_t, index=Py_ssize_t, negative=bint, value="long long", digit=int)
cpdef long long parse_integer(bytes text)
