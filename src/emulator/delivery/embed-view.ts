/**
 * The part of the channel embed that is seen: its stage, its messages and its player. A piece of browser script, for
 * `embed-script-wire.ts` to put together.
 */
export const EMBED_VIEW = `  const TEXTS = {
    waiting: 'Waiting for the event to begin',
    waitingDetail: 'The player starts here by itself.',
    starting: 'The event is about to begin',
    startingDetail: 'The player starts here by itself.',
    ended: 'The event has ended',
    endedDetail: 'The next one starts here by itself.',
    unknown: 'This channel does not exist',
    unknownDetail: 'Check the channel id.',
    trouble: 'The channel cannot be reached',
    troubleDetail: 'Trying again in a moment.',
    pictureless: 'The event is live',
    picturelessDetail: 'The stream has no picture yet. It starts here by itself.',
    unplayable: 'The event is live',
    unplayableDetail: 'The page needs a player for HLS to show it here.',
    live: 'Live',
  };
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const COVER = { position: 'absolute', inset: '0', width: '100%', height: '100%' };

  let count = 0;

  function make(tag, style, text) {
    const element = document.createElement(tag);
    Object.assign(element.style, style);
    if (text) element.textContent = text;
    return element;
  }

  function buildStage(texts) {
    const stage = make('div', {
      position: 'relative', boxSizing: 'border-box', width: '100%', aspectRatio: '16 / 9', overflow: 'hidden',
      borderRadius: '12px', color: '#eaf0ee', fontFamily: FONT, lineHeight: '1.4', textAlign: 'center',
      background: 'radial-gradient(120% 120% at 20% 0%, #1f4744 0%, #15201f 55%, #0c1413 100%) #1f4744',
    });
    const screen = make('div', COVER);
    const panel = make('div', {
      ...COVER, boxSizing: 'border-box', display: 'flex', flexDirection: 'column', alignItems: 'center',
      justifyContent: 'center', gap: '14px', padding: '16px', pointerEvents: 'none',
    });
    const dot = make('div', { width: '12px', height: '12px', borderRadius: '50%', background: '#6ed3c8' });
    dot.setAttribute('aria-hidden', 'true');
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
      dot.animate(
        [{ boxShadow: '0 0 0 0 rgba(110,211,200,.6)' }, { boxShadow: '0 0 0 16px rgba(110,211,200,0)' }],
        { duration: 1800, iterations: Infinity, easing: 'ease-out' },
      );
    }
    const words = make('div', {});
    words.setAttribute('role', 'status');
    words.setAttribute('aria-live', 'polite');
    const headline = make('div', { fontSize: 'clamp(16px, 2.6vw, 24px)', fontWeight: '600', overflowWrap: 'anywhere' });
    const detail = make('div', { fontSize: 'clamp(13px, 1.7vw, 16px)', color: '#b3c2bf', marginTop: '4px' });
    words.append(headline, detail);
    panel.append(dot, words);
    const badge = make('div', {
      position: 'absolute', top: '12px', left: '12px', padding: '2px 10px', borderRadius: '6px', fontSize: '12px',
      fontWeight: '700', letterSpacing: '.06em', textTransform: 'uppercase', color: '#fff', background: '#c81e3a',
      pointerEvents: 'none',
    }, texts.live);
    stage.append(screen, panel, badge);

    /** Shows a message, or the bare player: then the words are for screen readers alone. */
    function show(state, name, title) {
      stage.dataset.state = state;
      const lines = name ? [title || texts[name], texts[name + 'Detail']] : [texts.live + ': ' + title, ''];
      // What has not changed is not read out again.
      if (headline.textContent !== lines[0]) headline.textContent = lines[0];
      if (detail.textContent !== lines[1]) detail.textContent = lines[1];
      panel.style.opacity = name ? '1' : '0';
      dot.style.display = state === 'waiting' ? '' : 'none';
      badge.style.display = state === 'active' ? '' : 'none';
    }
    return { stage, screen, badge, show };
  }

  function isWebAddress(address) {
    return /^https?:$/.test(new URL(address, document.baseURI).protocol);
  }

  function isPlaylist({ file, type }) {
    return /mpegurl/i.test(type || '') || /\\.m3u8(?:[?#]|$)/.test(file);
  }

  /** Whether an HLS playlist lists nothing that could be seen: no segment, and no other playlist. */
  function isEmpty(playlist) {
    return /^#EXTM3U/.test(playlist) && !/^#(EXTINF|EXT-X-STREAM-INF|EXT-X-PART):/m.test(playlist);
  }

  /**
   * Puts a player into the screen, the page's own one or the browser's. stop() takes it away; look(getText) waits for
   * the picture of a stream that has none.
   */
  function play(view, playlistUrl, item, options) {
    view.screen.replaceChildren();
    const holder = make('div', COVER);
    holder.id = 'channel-embed-' + (count += 1);
    view.screen.append(holder);
    const title = String(item.title || '');
    view.show('active', '', title);
    if (typeof window.jwplayer === 'function') {
      view.badge.style.display = 'none';
      const player = window.jwplayer(holder.id);
      player.setup({ width: '100%', height: '100%', ...options, playlist: playlistUrl });
      return { stop: () => player.remove(), look: async () => {} };
    }
    const video = make('video', { ...COVER, objectFit: 'contain' });
    Object.assign(video, { controls: true, autoplay: true, muted: true, playsInline: true });
    video.setAttribute('aria-label', title);
    const source = (item.sources || []).find((each) => isWebAddress(each.file));
    let done = false;
    let stopped = false;
    const say = (name) => {
      video.style.display = name ? 'none' : '';
      view.show('active', name, title);
    };
    const onError = () => say('unplayable');
    video.addEventListener('error', onError);
    holder.append(video);
    if (item.image && isWebAddress(item.image)) video.poster = item.image;
    return {
      stop() {
        stopped = true;
        video.removeEventListener('error', onError);
        video.removeAttribute('src');
        video.load();
        holder.remove();
      },
      async look(getText) {
        if (done) return;
        // A playlist that can't be read from here may well be played.
        const playlist = source && isPlaylist(source) ? await getText(source.file).catch(() => '') : '';
        if (stopped) return;
        if (isEmpty(playlist)) {
          say('pictureless');
          return;
        }
        done = true;
        if (!source) { onError(); return; }
        say('');
        video.src = source.file;
      },
    };
  }
`;
