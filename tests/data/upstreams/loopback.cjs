// Preloaded into servers that would listen on every interface: tests listen on the loopback address alone.
const { Server } = require("node:net");
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...more) {
  return typeof port === "object" ? listen.call(this, port, ...more) : listen.call(this, { port: Number(port), host: "127.0.0.1" }, more.at(-1));
};
