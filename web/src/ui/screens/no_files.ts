// Files and images are not taken yet, wherever they are dropped or pasted, and that is said.
//
// Easy to get wrong: a file that is dropped beside the box where one writes. Browsers would open it in place of the page. And a file that
// comes with text, as file managers and word processors give it: the text is taken, so that nobody sees that the file was not.

/** What of it cannot be taken: nothing, everything, or the files beside a text. */
export type Refused = "nothing" | "all" | "files";

/** Listens everywhere on the page; gives how to stop. */
export function refuseFiles(on: EventTarget, tell: (what: "all" | "files") => void): () => void {
  const hold = (event: Event) => {
    // Without this there is no drop: the browser opens the file.
    if (isOfFiles((event as DragEvent).dataTransfer) && !isForFiles(event.target)) event.preventDefault();
  };
  const drop = (event: Event) => {
    if (event.defaultPrevented || !isOfFiles((event as DragEvent).dataTransfer) || isForFiles(event.target)) return;
    event.preventDefault();
    tell("all");
  };
  const paste = (event: Event) => {
    const refused = event.defaultPrevented ? "nothing" : refusedOf((event as ClipboardEvent).clipboardData);
    if (refused === "nothing") return;
    if (refused === "all") event.preventDefault();
    tell(refused);
  };
  const hears = [["dragover", hold], ["drop", drop], ["paste", paste]] as const;
  for (const [name, hear] of hears) on.addEventListener(name, hear);
  return () => {
    for (const [name, hear] of hears) on.removeEventListener(name, hear);
  };
}

/** What of the clipboard cannot be taken. */
export function refusedOf(data: Pick<DataTransfer, "files" | "getData"> | null): Refused {
  if (data === null || data.files.length === 0) return "nothing";
  return data.getData("text/plain") === "" ? "all" : "files";
}

/** While something is dragged, browsers tell its kinds only. */
function isOfFiles(data: DataTransfer | null): boolean {
  return data !== null && (data.files.length > 0 || data.types.includes("Files"));
}

/** Where one chooses a file to import. */
function isForFiles(target: EventTarget | null): boolean {
  return (target as { type?: unknown } | null)?.type === "file";
}
