// Where the page begins.
import "./app.css";
import { start } from "./start";
import { startWorker } from "./state/core";

const root = document.getElementById("app");
if (root !== null) void start(startWorker(), root);
