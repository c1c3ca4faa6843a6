// Whether a key sends. Enter that ends a composition (Japanese, Chinese, Korean and others) chooses a word and must never send half of one:
// `isComposing` says so, and where it comes too late, the key code 229 does.
import { enterSends } from "../state/prefs";

export interface Pressed {
  key: string;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  isComposing: boolean;
  keyCode: number;
}

export function sends(event: Pressed, isEnterEnough = enterSends.value): boolean {
  if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || event.altKey) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return isEnterEnough && !event.shiftKey;
}
