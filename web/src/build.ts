// Which build of the page this is. Every file asks for its parts by it, so that parts of two builds are never together.
//
//   /settings.js?b=1f2e…     the program hands it out if its own page is that build, and answers "not found" if it is another
//
// build.mjs puts the value in: a hash of all sources. In tests, which bundle for themselves, there is none.
declare const BUILD: string;

export const build: string = typeof BUILD === "string" ? BUILD : "";

/** The address of a file of this build. */
export function address(name: string): string {
  return build === "" ? `/${name}` : `/${name}?b=${build}`;
}
