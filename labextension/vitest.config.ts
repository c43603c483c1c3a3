import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "jsdom",
    // JupyterLab's packages are written for a bundler: Node alone does not find the files that they import.
    server: { deps: { inline: [/@jupyter/, /@microsoft/] } },
  },
});
