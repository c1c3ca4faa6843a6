// Parts of the worker that are loaded when they are needed. One that does not come is an error by name: the server is away, or has another page.
import { ClientError } from "./error";

/** A part: `part(() => import("./rotate"))`. `not-loaded`: it did not come. */
export async function part<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch {
    throw new ClientError("not-loaded");
  }
}
