// What a chat is about, as a small drawing. The server's model names icons of a big set; the page has few of its own, and each of those names
// that it knows has one. A chat with another icon, or none, has the first letter of its title.

const DRAWINGS: [names: string, path: string][] = [
  ["code terminal bug file-code braces", "m6 5-3 3 3 3M10 5l3 3-3 3"],
  ["heart-pulse stethoscope pill heart hospital activity", "M8 13.2S2.2 9.8 2.2 5.9A2.9 2.9 0 0 1 8 4.9a2.9 2.9 0 0 1 5.8 1C13.8 9.8 8 13.2 8 13.2Z"],
  ["scale gavel landmark vote scroll", "M8 2.5v11M5 13.5h6M3 4.5h10M3 4.5 1.3 9h3.4L3 4.5ZM13 4.5 11.3 9h3.4L13 4.5Z"],
  ["piggy-bank wallet coins banknote receipt credit-card", "M2.3 4.5h11.4v8H2.3zM2.3 7h11.4M10.8 9.8h.01"],
  ["chart-line chart-column trending-up target megaphone", "M2.5 2.5v11h11M4.8 10.5 7.5 7.3l2 1.7 3.7-4.5"],
  ["briefcase briefcase-business building-2 handshake id-card", "M2.3 5.3h11.4v7.6H2.3zM5.8 5.2V3.1h4.4v2.1M2.3 8.6h11.4"],
  ["palette pencil-ruler brush pen-line feather pencil", "m3 13 .6-2.8L10.9 3l2.1 2.1-7.2 7.3L3 13ZM9.4 4.5l2.1 2.1"],
  ["chef-hat utensils cooking-pot soup pizza apple coffee", "M4.5 2.5v4a1.7 1.7 0 0 0 3.4 0v-4M6.2 8.2v5.3M11.3 13.5v-11c-1.6.8-2.2 2.6-2.2 4.6 0 1.2.8 1.8 2.2 1.8"],
  ["plane map luggage ship train compass ticket", "M14 2 1.8 6.8l4.6 2 2 4.6L14 2ZM6.4 8.8 14 2"],
  ["flask-conical atom microscope test-tube dna", "M6 2.3h4M6.7 2.5v4L3 13.3h10L9.3 6.5v-4M4.8 10h6.4"],
  ["calculator sigma pi percent divide", "M3.5 2.3h9v11.4h-9zM5.6 5h4.8M5.7 8.3h.01M8 8.3h.01M10.3 8.3h.01M5.7 11h.01M8 11h.01M10.3 11h.01"],
  ["book book-open graduation-cap school library notebook", "M8 4.2C6.5 3.2 4.7 3 2.3 3v9.3c2.4 0 4.2.3 5.7 1.4 1.5-1.1 3.3-1.4 5.7-1.4V3C11.3 3 9.5 3.2 8 4.2ZM8 4.2v9.4"],
  ["languages globe speech message-circle earth", "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM2.3 8h11.4M8 2.2c2.4 2.4 2.4 9.2 0 11.6C5.6 11.4 5.6 4.6 8 2.2Z"],
  ["brain smile lightbulb sparkles church", "M6 13.6h4M5.9 11.6c0-1.7-2-2.4-2-5a4.1 4.1 0 0 1 8.2 0c0 2.6-2 3.3-2 5H5.9Z"],
  ["hourglass calendar clock alarm-clock timer", "M2.5 3.8h11v9.4h-11zM2.5 6.8h11M5.3 2.2v3M10.7 2.2v3"],
  ["dumbbell trophy medal bike", "M5 2.5h6v4.2a3 3 0 0 1-6 0V2.5ZM5 3.8H2.8c0 2.2.7 3.3 2.3 3.6M11 3.8h2.2c0 2.2-.7 3.3-2.3 3.6M8 9.8v3.6M5.3 13.4h5.4"],
  ["music guitar headphones mic", "M6 12.3V3.6l7-1.3v8.5M6 12.3a1.8 1.8 0 1 1-3.6 0 1.8 1.8 0 0 1 3.6 0ZM13 10.8a1.8 1.8 0 1 1-3.6 0 1.8 1.8 0 0 1 3.6 0Z"],
  ["clapperboard film tv camera gamepad-2 dices swords", "M2.3 4h11.4v8.3H2.3zM6.7 6.2v3.9L10 8.2 6.7 6.2Z"],
  ["cpu circuit-board wrench hammer plug settings", "M4.3 4.3h7.4v7.4H4.3zM6.3 2v2M9.7 2v2M6.3 12v2M9.7 12v2M2 6.3h2M2 9.7h2M12 6.3h2M12 9.7h2"],
  ["house sprout trees flower leaf sofa", "M2.5 7.6 8 2.8l5.5 4.8M4 6.6v6.7h8V6.6M6.7 13.2V9.4h2.6v3.8"],
  ["paw-print dog cat bird fish", "M4 7.2h.01M6.4 4.4h.01M9.6 4.4h.01M12 7.2h.01M8 7.6c-2 0-3.6 2-3.6 3.7 0 1.3 1 1.9 2 1.9.7 0 1-.3 1.6-.3s.9.3 1.6.3c1 0 2-.6 2-1.9C11.6 9.6 10 7.6 8 7.6Z"],
  ["car fuel bus truck", "M2.3 11.6V8.3l1.5-3.8h8.4l1.5 3.8v3.3H2.3ZM2.3 8.3h11.4M4.6 11.8v1.4M11.4 11.8v1.4"],
  ["users user baby user-round", "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8ZM2.8 13.5c.6-2.4 2.5-3.7 5.2-3.7s4.6 1.3 5.2 3.7"],
];

/** The category of everything that has none of its own. */
export const GENERAL = "general";

const BY_NAME = new Map(DRAWINGS.flatMap(([names, path]) => names.split(" ").map((name): [string, string] => [name, path])));

/** Whether there is a drawing for an icon of this name. */
export function hasDrawing(icon: string | null): boolean {
  return icon !== null && BY_NAME.has(icon.trim().toLowerCase());
}

/** What a chat is about. It says nothing to a screen reader: the title stands beside it. */
export function Topic({ icon, size = 13 }: { icon: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false" fill="none" stroke="currentColor" stroke-width={1.5} stroke-linecap="round" stroke-linejoin="round">
      <path d={BY_NAME.get(icon.trim().toLowerCase()) ?? ""} />
    </svg>
  );
}
