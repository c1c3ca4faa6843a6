// What languages.mjs makes of src/ui/lang/: the first language is English.
interface Language {
  code: string;
  name: string;
  dir: "ltr" | "rtl";
}

declare module "languages:page" {
  type One = Language & { load: () => Promise<import("./ui/lang/en").Words> };
  export const LANGUAGES: readonly [One, ...One[]];
}

declare module "languages:console" {
  type One = Language & { words: import("./ui/lang/en").Administrator };
  export const LANGUAGES: readonly [One, ...One[]];
}
