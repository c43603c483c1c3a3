// The version is written in op_jupyter/__init__.py alone; JupyterLab looks for it in the extension's package.json.

import { readFileSync, writeFileSync } from "node:fs";

const [, version] = readFileSync("../op_jupyter/__init__.py", "utf8").match(/^__version__ = "(.+)"$/m);
const extension = JSON.parse(readFileSync("dist/package.json", "utf8"));
writeFileSync("dist/package.json", `${JSON.stringify({ ...extension, version }, null, 2)}\n`);
