// The icons of the page: one set, drawn on a grid of 16, in the colour of the text around them. They are never alone: a name stands
// beside them, or the button that holds them has one.

const PATHS = {
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  plus: "M8 3v10M3 8h10",
  search: "M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10ZM10.7 10.7 14 14",
  send: "M8 13V3M3.8 7.2 8 3l4.2 4.2",
  stop: "M4.5 4.5h7v7h-7z",
  check: "m3 8.5 3.3 3.3L13 5",
  copy: "M5.5 5.5h7.2v7.2H5.5zM10.3 5.3V3.2H3.2v7.1h2.1",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13.2 2.2v2.9h-2.9",
  edit: "m3 13 .6-2.8L10.9 3l2.1 2.1-7.2 7.3L3 13ZM9.4 4.5l2.1 2.1",
  trash: "M3 4.5h10M6.3 4.3V2.8h3.4v1.5M4.4 4.6l.6 8.6h6l.6-8.6M6.8 7v3.8M9.2 7v3.8",
  pin: "M6 2.5h4l-.5 4 2.3 2.3H4.2L6.5 6.5 6 2.5ZM8 8.8v4.7",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  lock: "M4 7.3h8v6H4zM5.7 7.2V5.3a2.3 2.3 0 0 1 4.6 0v1.9",
  unlocked: "M4 7.3h8v6H4zM5.7 7.2V5.3a2.3 2.3 0 0 1 4.5-.6",
  seal: "M8 2.2c1 0 1.4.9 2.3 1.2.9.2 1.8-.1 2.3.8s-.2 1.6 0 2.5c.2.9 1 1.4.8 2.3-.2 1-1.1 1.1-1.6 1.9-.5.8-.4 1.8-1.3 2.2-.9.4-1.6-.3-2.5-.3s-1.6.7-2.5.3c-.9-.4-.8-1.4-1.3-2.2-.5-.8-1.4-.9-1.6-1.9-.2-.9.6-1.4.8-2.3.2-.9-.5-1.6 0-2.5s1.4-.6 2.3-.8C6.6 3.1 7 2.2 8 2.2ZM6 8l1.5 1.5L10.2 6.6",
  eye: "M1.8 8S4 3.8 8 3.8 14.2 8 14.2 8 12 12.2 8 12.2 1.8 8 1.8 8ZM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6",
  image: "M2.5 3.5h11v9h-11zM2.8 11l3-3 2.4 2.3 2-1.8 3 2.7M10.4 6.2h.01",
  settings: "M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4",
  device: "M3 3h10v7H3zM1.8 12.8h12.4",
  key: "M5.2 10.8a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2ZM7.8 8.2h6v2.3M11.4 8.4v1.8",
  left: "M10 3.5 5.5 8l4.5 4.5",
  right: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  close: "m4 4 8 8M12 4l-8 8",
  offline: "M2 5.6a9 9 0 0 1 3.2-1.8M8 3.2c2.3 0 4.4.9 6 2.4M4.3 8.3A5.4 5.4 0 0 1 8 6.8c1.4 0 2.7.6 3.7 1.5M8 12.2h.01M2.5 2.5l11 11",
  wait: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.8V8l2.2 1.6",
  warn: "M8 2.4 14.4 13H1.6L8 2.4ZM8 6.6v3M8 11.4h.01",
  heart: "M8 13.2S2.2 9.8 2.2 5.9A2.9 2.9 0 0 1 8 4.9a2.9 2.9 0 0 1 5.8 1C13.8 9.8 8 13.2 8 13.2Z",
  tool: "M9.6 6.4a3 3 0 0 1 4-3.7L11.9 4.4l.3 1.4 1.4.3 1.7-1.7a3 3 0 0 1-3.7 4L5.5 14.5a1.4 1.4 0 0 1-2-2l6.1-6.1Z",
  download: "M8 2.5v7.5M4.7 7 8 10.3 11.3 7M2.8 13.2h10.4",
  upload: "M8 10.3V2.8M4.7 6 8 2.7 11.3 6M2.8 13.2h10.4",
  sun: "M8 10.6a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2ZM8 1.8v1.6M8 12.6v1.6M1.8 8h1.6M12.6 8h1.6M3.6 3.6l1.1 1.1M11.3 11.3l1.1 1.1M12.4 3.6l-1.1 1.1M4.7 11.3l-1.1 1.1",
  ghost: "M3.5 13.3V7a4.5 4.5 0 0 1 9 0v6.3l-1.6-1.2-1.4 1.2L8 12.1l-1.5 1.2-1.4-1.2-1.6 1.2ZM6.3 7h.01M9.7 7h.01",
  keyboard: "M1.8 4.5h12.4v7.5H1.8zM4.2 7h.01M6.7 7h.01M9.3 7h.01M11.8 7h.01M5 9.8h6",
  unchecked: "M5.9 6.2a2.1 2.1 0 1 1 2.9 2c-.5.2-.8.6-.8 1.1v.3M8 11.6h.01M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z",
  branch: "M4.5 3v10M4.5 8.5h4a3 3 0 0 0 3-3V3",
  link: "M6.6 9.4 9.4 6.6M7.3 4.7l1.5-1.5a2.8 2.8 0 0 1 4 4l-1.5 1.5M8.7 11.3l-1.5 1.5a2.8 2.8 0 0 1-4-4l1.5-1.5",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon. It says nothing to a screen reader: what stands beside it does. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  const isDots = name === "more";
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false" fill="none" stroke="currentColor" stroke-width={isDots ? 2 : 1.4} stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The sealing wax of the name. */
export function Wax({ size = 22 }: { size?: number }) {
  return (
    <svg class="wax" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path class="wax-edge" d="M12 1.5c1.9 0 2.6 1.6 4.3 2.2 1.7.5 3.5-.1 4.5 1.5s-.2 3 .1 4.7c.3 1.8 1.8 2.7 1.3 4.5-.5 1.9-2.2 2.1-3.2 3.6-.9 1.5-.7 3.3-2.4 4.1-1.7.8-3-.5-4.6-.5s-2.9 1.3-4.6.5c-1.7-.8-1.5-2.6-2.4-4.1-1-1.5-2.7-1.7-3.2-3.6-.5-1.8 1-2.7 1.3-4.5.3-1.7-.9-3.1.1-4.7s2.8-1 4.5-1.5C9.4 3.1 10.1 1.5 12 1.5Z" />
      <circle class="wax-face" cx="12" cy="12" r="6.6" />
      <path class="wax-mark" d="M14.6 9.9a3.4 3.4 0 1 0 0 4.2" />
    </svg>
  );
}
