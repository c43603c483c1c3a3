import { commandsPlugin } from "./commands";
import { highlightPlugin } from "./highlight";
import { mimePlugin } from "./mime";
import { notifyPlugin } from "./notify";
import { reattachPlugin } from "./reattach";
import { runsPlugin } from "./runs";
import { statusPlugin } from "./status";

export default [runsPlugin, mimePlugin, reattachPlugin, highlightPlugin, commandsPlugin, statusPlugin, notifyPlugin];
