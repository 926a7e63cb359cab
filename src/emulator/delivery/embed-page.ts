import { html } from '../../kernel/html';

/** Without quotes or angle brackets, which the template would escape. */
const STYLE = `
:root { color-scheme: light dark; --ink: #1b2233; --soft: #5a6580; --paper: #f5f7fb; --card: #fff; --line: #dde3ef; --blue: #2f55d4 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf5; --soft: #a3adc4; --paper: #0f1420; --card: #171e2f; --line: #2a3449; --blue: #8fa8ff } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, Segoe UI, Roboto, sans-serif }
main { max-width: 880px; margin: 0 auto; padding: clamp(16px, 4vw, 48px) }
h1 { margin: 0 0 4px; font-size: clamp(22px, 4vw, 30px); line-height: 1.2 }
h2 { margin: 32px 0 8px; font-size: 17px }
p { margin: 0 0 20px; color: var(--soft) }
#stage { box-shadow: 0 0 0 1px var(--line), 0 12px 36px rgb(10 16 34 / .22); border-radius: 12px }
pre { margin: 0; padding: 16px; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--card); border: 1px solid var(--line); border-radius: 10px; font: 13px/1.6 ui-monospace, SFMono-Regular, Menlo, monospace }
form { display: flex; flex-wrap: wrap; gap: 8px; margin-bottom: 20px }
label { flex-basis: 100%; font-weight: 600 }
input { flex: 1 1 180px; min-width: 0; font: inherit; padding: 10px 12px; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 8px }
button { font: inherit; font-weight: 600; padding: 10px 18px; color: #fff; background: #2f55d4; border: 0; border-radius: 8px }
:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px }
`;

export interface EmbedPage {
  /** Undefined when the address names no channel. */
  readonly channelId: string | undefined;
  readonly origin: string;
  /** Allows the page's own scripts and style, and nothing else. */
  readonly nonce: string;
}

/** A page that does what a publisher's page does: loads the embed script and calls its setup function. */
export function embedPage({ channelId, origin, nonce }: EmbedPage): string {
  const script = `${origin}/embed/channel.js`;
  const example = `<div id="stage"></div>
<script src="${script}"></script>
<script>channelEmbed.setup({ channelId: '${channelId ?? 'CHANNEL_ID'}', element: '#stage' })</script>`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Channel ${channelId ?? 'embed'}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<main>
<h1>Channel embed</h1>
${channelId === undefined ? form() : stage(channelId, nonce)}
<h2>On your own page</h2>
<pre><code>${example}</code></pre>
</main>
</body>
</html>
`.toString();
}

function form() {
  return html`<p>Shows a live channel as viewers see it.</p>
<form>
<label for="channel">Channel id</label>
<input id="channel" name="channelId" required autocomplete="off" spellcheck="false" placeholder="8 letters and digits">
<button>Show</button>
</form>`;
}

function stage(channelId: string, nonce: string) {
  return html`<p>Channel ${channelId}, as viewers see it.</p>
<div id="stage" data-channel="${channelId}"></div>
<script nonce="${nonce}" src="channel.js"></script>
<script nonce="${nonce}">channelEmbed.setup({ channelId: document.getElementById('stage').dataset.channel, element: '#stage' })</script>`;
}
