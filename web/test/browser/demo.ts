// The page over the double: `/demo/?state=streaming&dir=rtl`. In tests only.
import "../../src/ui/app.css";
import { start } from "../../src/ui/start";
import { double, SCENES } from "./double";

const params = new URLSearchParams(location.search);
const scene = (SCENES[params.get("state") ?? "chat"] ?? SCENES["chat"])?.();
const root = document.getElementById("app");
if (scene !== undefined && root !== null) {
  const played = double(scene);
  Object.assign(globalThis, { played });
  void start(played.core, root).then(() => {
    // In place of the language's own.
    document.documentElement.dir = params.get("dir") ?? document.documentElement.dir;
    scene.events.forEach(played.emit);
  });
}
