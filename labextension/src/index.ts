import { mimePlugin } from "./mime";
import { reattachPlugin } from "./reattach";

export default [mimePlugin, reattachPlugin];
