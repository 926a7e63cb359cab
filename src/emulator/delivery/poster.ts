import { html } from '../../http/html';

const LONGEST_LINE = 36;

/** A picture of 16 to 9 that shows a title, as SVG: the emulator takes no picture from a stream. */
export function poster(title: string, width: number): string {
  const line = title.length > LONGEST_LINE ? `${title.slice(0, LONGEST_LINE - 1)}…` : title;
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${Math.round((width * 9) / 16)}" viewBox="0 0 1280 720">
<defs><linearGradient id="sky" x1="0" y1="0" x2="1" y2="1"><stop stop-color="#1f4744"/><stop offset="1" stop-color="#0c1413"/></linearGradient></defs>
<rect width="1280" height="720" fill="url(#sky)"/>
<text x="640" y="375" fill="#eaf0ee" font-family="system-ui, sans-serif" font-size="56" font-weight="600" text-anchor="middle">${line}</text>
</svg>
`.toString();
}
