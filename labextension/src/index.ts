import { mimePlugin } from "./mime";

export default [mimePlugin];
