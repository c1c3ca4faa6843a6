// A redactor that is not closed does not keep its process alive, and goes with it.
import { Redactor } from "confidant-memory/redact";

const redactor = new Redactor();
console.log((await redactor.redact("write to jane@example.org")).value);
