/* What script adds to a list that has an order: dragging by a handle, and the arrow keys on it. */
'use strict';

(() => {
  const SAVE_MS = 400;

  const announce = (text) => {
    document.getElementById('announcement').textContent = text;
  };

  const listOf = (element) => element.closest('[data-order]');

  function placeOf(item) {
    const first = Number(listOf(item).getAttribute('start') ?? 1);
    return first + [...item.parentElement.children].indexOf(item);
  }

  let waiting;

  /** Sends the order that the list has now, once nobody moves anything any more. */
  function save(list) {
    list.dataset.busy = '';
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const order = [...list.children].map((item) => item.dataset.id).join(',');
      try {
        const answer = await fetch(list.dataset.order, {
          method: 'POST',
          headers: { accept: 'application/json' },
          body: new URLSearchParams({ order }),
        });
        if (!answer.ok) throw new Error();
      } catch {
        announce('The order was not saved. Load the page again.');
      }
      delete list.dataset.busy;
      document.dispatchEvent(new Event('dashboard-changed'));
    }, SAVE_MS);
  }

  /** The buttons at the ends lead nowhere. */
  function markEnds(list) {
    const items = [...list.children];
    const isPaged = list.parentElement.querySelector('.pager') !== null;
    for (const item of items) {
      for (const button of item.querySelectorAll('[data-by]')) {
        const end = Number(button.dataset.by) < 0 ? items[0] : items.at(-1);
        button.disabled = !isPaged && item === end;
      }
    }
  }

  /** Those around it go to its other side: what is moved itself would lose the pointer and the focus. */
  function move(item, before) {
    const items = [...item.parentElement.children];
    const from = items.indexOf(item);
    const to = before ? items.indexOf(before) : items.length;
    if (to < from) item.after(...items.slice(to, from));
    else item.before(...items.slice(from + 1, to));
    markEnds(listOf(item));
  }

  /** Moves by one place. Whether there was one. */
  function step(item, by) {
    const other = by < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return false;
    const focused = document.activeElement;
    move(item, by < 0 ? other : other.nextElementSibling);
    const target = focused.disabled ? item.querySelector('.handle') : focused;
    target.focus();
    announce(`${item.dataset.name} is at place ${placeOf(item)}.`);
    save(listOf(item));
    return true;
  }

  document.addEventListener('keydown', (event) => {
    const handle = event.target.closest('.handle');
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!handle || by === undefined || !listOf(handle)) return;
    event.preventDefault();
    step(handle.closest('li'), by);
  });

  document.addEventListener('submit', (event) => {
    const { submitter } = event;
    if (!submitter?.dataset.by || !listOf(submitter)) return;
    // At the end of a page, the server moves it to the next one.
    if (step(submitter.closest('li'), Number(submitter.dataset.by))) event.preventDefault();
  });

  document.addEventListener('pointerdown', (event) => {
    const handle = event.target.closest('.handle');
    if (!handle || !listOf(handle) || event.button !== 0) return;
    event.preventDefault();
    handle.focus({ focusVisible: false });
    const item = handle.closest('li');
    const list = listOf(item);
    const begun = [...list.children];
    list.dataset.busy = '';
    item.classList.add('dragged');
    handle.setPointerCapture(event.pointerId);

    const follow = ({ clientY }) => {
      const others = [...list.children].filter((other) => other !== item);
      const before = others.find((other) => {
        const { top, height } = other.getBoundingClientRect();
        return clientY < top + height / 2;
      });
      if ((before ?? null) !== item.nextElementSibling) move(item, before ?? null);
      const edge = 60;
      if (clientY < edge) scrollBy(0, -12);
      else if (clientY > innerHeight - edge) scrollBy(0, 12);
    };
    const end = (ending) => {
      handle.removeEventListener('pointermove', follow);
      for (const type of ['pointerup', 'pointercancel']) handle.removeEventListener(type, end);
      removeEventListener('keydown', leave);
      item.classList.remove('dragged');
      if (ending.type === 'pointercancel' || ending.type === 'keydown') {
        list.replaceChildren(...begun);
        markEnds(list);
      }
      if (begun.every((other, place) => list.children[place] === other)) {
        delete list.dataset.busy;
        return;
      }
      announce(`${item.dataset.name} is at place ${placeOf(item)}.`);
      save(list);
    };
    const leave = (key) => {
      if (key.key === 'Escape') end(key);
    };
    handle.addEventListener('pointermove', follow);
    for (const type of ['pointerup', 'pointercancel']) handle.addEventListener(type, end);
    addEventListener('keydown', leave);
  });
})();
