// A job's life through a Redis client for Node: node life-cycle.mjs CLIENT PROTOCOL PORT [PASSWORD]
// Prints what came back as JSON; any error reply ends it with exit code 1.
import { Redis } from "ioredis";
import { createClient } from "redis";

const [client, protocol, port, password] = process.argv.slice(2);

async function connectIoredis() {
  const redis = new Redis({
    host: "127.0.0.1", port: Number(port), password, protocol: Number(protocol),
    maxRetriesPerRequest: 0, retryStrategy: () => null,
  });
  await new Promise((resolve, reject) => redis.once("ready", resolve).once("error", reject));
  return { call: (...words) => redis.call(...words), close: () => redis.quit() };
}

async function connectNodeRedis() {
  const redis = createClient({
    socket: { host: "127.0.0.1", port: Number(port), reconnectStrategy: false }, password, RESP: Number(protocol),
  });
  redis.on("error", (error) => { throw error; });
  await redis.connect();
  return { call: (...words) => redis.sendCommand(words), close: () => redis.close() };
}

const { call, close } = await (client === "ioredis" ? connectIoredis() : connectNodeRedis());
const id = await call("ADDJOB", "node", "body", "0");
const waiting = await call("QLEN", "node");
const jobs = await call("GETJOB", "FROM", "node");
const acked = await call("ACKJOB", id);
const nothing = await call("GETJOB", "NOHANG", "FROM", "node");
const unknown = await call("SHOW", id);
let refused = null;
try { await call("ADDJOB", "node", "x", "0", "TTL", "0"); } catch (error) { refused = error.message; }
await close();
console.log(JSON.stringify({ id, waiting, jobs, acked, nothing, unknown, refused }));
