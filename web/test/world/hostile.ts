// Texts that somebody may put into a chat, a title or a tool's arguments to harm whoever reads them. All of them must stay texts.

/** Markup and addresses. In a browser, `alert` would be seen. */
export const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg/onload=alert(1)>",
  "<iframe src=javascript:alert(1)></iframe>",
  "<a href='javascript:alert(1)'>x</a>",
  "<style>*{display:none}</style>",
  "<b onmouseover=alert(1)>bold</b>",
  "</div></body><h1>escaped",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](  javascript:alert(1))",
  "[x](java\nscript:alert(1))",
  "[x](java&#115;cript:alert(1))",
  "[x](&#x6A;avascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](vbscript:msgbox)",
  "[x](file:///etc/passwd)",
  "[x](blob:https://a.example/1)",
  "[x](//evil.example/)",
  "[x](/logout)",
  "[x](#/settings)",
  "[x][1]\n\n[1]: javascript:alert(1)",
  "<javascript:alert(1)>",
  "![x](javascript:alert(1))",
  "![x](data:image/svg+xml,<svg onload=alert(1)>)",
  '[x](https://a.example "onclick=alert(1)")',
  "[a](https://a.example/%0d%0aSet-Cookie:x)",
  "```html\n<script>alert(1)</script>\n```",
  "| <script> | <img onerror=1> |\n|---|---|\n| [x](javascript:1) | `<b>` |",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  "**[<img src=x onerror=1>](javascript:1)**",
];

/** Characters that hide, or turn text round. */
export const HIDDEN = "pay\u202etxt.exe\u202c zero\u200bwidth \u2066isolated\u2069 mark\u061c tag\u{e0041}\u{e0042} \ufeffend";

/** Links that look like others. */
export const DISGUISED = [
  "[https://bank.example/login](https://evil.example/)",
  "[bank.example](https://bank.example.evil.example/)",
  "[my bank](https://bank.example@evil.example/)",
  "[аррӏе.com](https://xn--80ak6aa92e.com/)",
  "![a map](https://tracker.example/pixel.png?d=secret)",
  "[x](https://evil.example/\u202emoc.elpmaxe)",
];

/** Structures that are deep or large, by name. */
export const HUGE: Record<string, string> = {
  quotes: `${">".repeat(5_000)} deep`,
  lists: Array.from({ length: 200 }, (_, n) => `${"  ".repeat(n)}- deep`).join("\n"),
  emphasis: "*_".repeat(20_000),
  brackets: "[".repeat(20_000),
  backticks: "`".repeat(20_001),
  table: `| ${"a | ".repeat(60)}\n|${"---|".repeat(60)}\n${`| ${"b | ".repeat(60)}\n`.repeat(600)}`,
  code: `\`\`\`js\n${"let x = '<script>alert(1)</script>';\n".repeat(4_000)}\`\`\``,
  line: "x".repeat(200_000),
  combining: `z${"\u0300\u0489".repeat(5_000)}`,
};
