/* Adds to a list with an order: dragging by a handle, and the arrow keys on it. */
'use strict';

(() => {
  const SAVE_MS = 400;
  const EDGE = 60;
  const listOf = (element) => element.closest('[data-order]');
  let waiting;

  /** Announces the place of an item, and sends the order once nothing moves any more. */
  function save(item) {
    const list = listOf(item);
    const place = Number(list.getAttribute('start') ?? 1) + [...list.children].indexOf(item);
    announce(`${item.dataset.name} is at place ${place}.`);
    list.dataset.busy = '';
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const order = [...list.children].map(({ dataset }) => dataset.id).join(',');
      const headers = { accept: 'application/json' };
      const body = new URLSearchParams({ order });
      const answer = await fetch(list.dataset.order, { method: 'POST', headers, body }).catch(
        () => undefined,
      );
      const unsaved = document.getElementById('order-unsaved');
      unsaved.hidden = answer?.ok === true;
      unsaved.scrollIntoView({ block: 'nearest' });
      delete list.dataset.busy;
      document.dispatchEvent(new Event('dashboard-changed'));
    }, SAVE_MS);
  }

  function markEnds(list) {
    const isPaged = list.parentElement.querySelector('.pager') !== null;
    for (const button of list.querySelectorAll('[data-by]')) {
      const end = Number(button.dataset.by) < 0 ? list.firstElementChild : list.lastElementChild;
      button.disabled = !isPaged && end.contains(button);
    }
  }

  /** Moves the neighbours to the other side of the item: moved itself, it would lose the pointer and the focus. */
  function move(item, before) {
    const items = [...item.parentElement.children];
    const from = items.indexOf(item);
    const to = before ? items.indexOf(before) : items.length;
    if (to < from) item.after(...items.slice(to, from));
    else item.before(...items.slice(from + 1, to));
    markEnds(listOf(item));
  }

  /** Moves by one place. Returns whether there was one. */
  function step(item, by) {
    const other = by < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return false;
    const focused = document.activeElement;
    move(item, by < 0 ? other : other.nextElementSibling);
    (focused.disabled ? item.querySelector('.handle') : focused).focus();
    save(item);
    return true;
  }

  document.addEventListener('keydown', (event) => {
    const handle = event.target.closest('[data-order] .handle');
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!handle || by === undefined) return;
    event.preventDefault();
    step(handle.closest('li'), by);
  });

  document.addEventListener('submit', (event) => {
    const button = event.submitter?.closest('[data-order] [data-by]');
    // At the end of a page, the server moves the item to the next one.
    if (button && step(button.closest('li'), Number(button.dataset.by))) event.preventDefault();
  });

  document.addEventListener('pointerdown', (event) => {
    const handle = event.target.closest('[data-order] .handle');
    if (!handle || event.button !== 0) return;
    event.preventDefault();
    handle.focus({ focusVisible: false });
    const item = handle.closest('li');
    const list = listOf(item);
    const begun = [...list.children];
    const ended = new AbortController();
    list.dataset.busy = '';
    item.classList.add('dragged');
    handle.setPointerCapture(event.pointerId);

    const follow = ({ clientY }) => {
      const before = [...list.children].find((other) => {
        const { top, height } = other.getBoundingClientRect();
        return other !== item && clientY < top + height / 2;
      });
      if ((before ?? null) !== item.nextElementSibling) move(item, before ?? null);
      if (clientY < EDGE) scrollBy(0, -12);
      else if (clientY > innerHeight - EDGE) scrollBy(0, 12);
    };
    const end = ({ type, key }) => {
      if (type === 'keydown' && key !== 'Escape') return;
      ended.abort();
      item.classList.remove('dragged');
      if (type !== 'pointerup') {
        list.replaceChildren(...begun);
        markEnds(list);
      }
      if (begun.every((other, place) => list.children[place] === other)) delete list.dataset.busy;
      else save(item);
    };
    const { signal } = ended;
    handle.addEventListener('pointermove', follow, { signal });
    for (const type of ['pointerup', 'pointercancel']) handle.addEventListener(type, end, { signal });
    addEventListener('keydown', end, { signal });
  });
})();
