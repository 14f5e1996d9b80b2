// CPython 3.14 (Pyodide, in Node) with a command line like Python's own:
//   node python.mjs (FILE | -m MODULE | -c CODE) [ARGUMENTS…]
// It sees the folder of the project, and nothing of the environment. `start.py` says what else it lacks.
import { spawnSync } from "node:child_process";
import { readFileSync, writeSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const self = fileURLToPath(import.meta.url);
const project = resolve(dirname(self), "../..");
const installed = join(project, ".py314");
const { loadPyodide } = await import(join(installed, "node_modules/pyodide/pyodide.mjs"));

const python = await loadPyodide({ env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" } });

function writeAll(stream, bytes) {
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(stream, bytes, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
  return bytes.length;
}

python.setStdout({ write: (bytes) => writeAll(1, bytes) });
python.setStderr({ write: (bytes) => writeAll(2, bytes) });

let input = null;
let read = 0;
python.setStdin({
  read: (buffer) => {
    input ??= readFileSync(0);
    const part = input.subarray(read, read + buffer.length);
    buffer.set(part);
    read += part.length;
    return part.length;
  },
});

// A process has no file system of its own: the project is at its own path, and everything else is in memory.
python.FS.mkdirTree(project);
python.mountNodeFS(project, project);
python.FS.chdir(project);

function run(words, text, seconds) {
  const done = spawnSync(process.execPath, [...process.execArgv, self, ...words.toJs()], {
    cwd: project,
    input: text,
    timeout: seconds === undefined ? undefined : seconds * 1000,
    maxBuffer: 2 ** 30,
  });
  return python.toPy([done.status ?? -1, done.stdout.toString(), done.stderr.toString(), done.error?.code ?? null]);
}

const start = python.globals.get("dict")();
python.runPython(readFileSync(join(dirname(self), "start.py"), "utf-8"), { globals: start });
process.exitCode = start.get("main")(python.toPy([self, installed, project]), python.toPy(process.argv.slice(2)), run, (status) => process.exit(status));
