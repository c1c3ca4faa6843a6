// A QR code, drawn. Black on white in every theme: cameras want it so.
import { qrCode } from "../qr";

/** Nothing, if the text is too long for one: whatever it says stands beside it, to be typed. */
export function Qr({ text, label }: { text: string; label: string }) {
  const rows = qrCode(text);
  if (rows === null) return null;
  const size = rows.length + 8;
  const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x + 4} ${y + 4}h1v1h-1z` : ""))).join("");
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
