/* What script adds to the dashboard: copy buttons, lists that are searched while typing, and states that stay up to date. */
'use strict';

const REFRESH_MS = 4000;
const TYPING_MS = 200;
const root = document.documentElement;
root.classList.add('js');

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  if (!source) return;
  const announcement = document.getElementById('announcement');
  try {
    await navigator.clipboard.writeText(source.textContent);
    announcement.textContent = 'Copied.';
    button.classList.add('copied');
    setTimeout(() => button.classList.remove('copied'), 1500);
  } catch {
    // Over plain HTTP to another machine there is no clipboard: the text is selected, to be copied by hand.
    getSelection().selectAllChildren(source);
    announcement.textContent = 'Selected. Copy it with the keyboard.';
  }
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]');
  if (button) copy(button);
});

const regions = () => [...document.querySelectorAll('[data-live]')];
// As the server sent them: what is on the page may have been opened since.
const sent = new Map(regions().map((region) => [region.id, region.innerHTML]));

/** Whether somebody has changed what a field says. */
function isEdited(field) {
  if (field.type === 'checkbox') return field.checked !== field.defaultChecked;
  if (field.type === 'file') return field.files.length > 0;
  if (field.tagName !== 'SELECT') return field.value !== field.defaultValue;
  const options = [...field.options];
  return (
    field.selectedIndex !==
    Math.max(
      options.findIndex((option) => option.defaultSelected),
      0,
    )
  );
}

function isInUse(region) {
  const selection = getSelection();
  return (
    region.querySelector(':focus-visible, [data-busy]') ||
    [...region.querySelectorAll('input, textarea, select')].some(isEdited) ||
    (selection && !selection.isCollapsed && region.contains(selection.anchorNode))
  );
}

/** When the page is to show something else than before, what is in use changes as well. */
async function refresh(isOther) {
  if (regions().length === 0) return;
  const asked = location.href;
  const answer = await fetch(location.pathname + location.search, { headers: { accept: 'text/html' } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  // Meanwhile something else may have been searched for.
  if (location.href !== asked) return;
  for (const region of regions()) {
    const next = fresh.getElementById(region.id);
    if (!next || next.innerHTML === sent.get(region.id) || (!isOther && isInUse(region))) continue;
    sent.set(region.id, next.innerHTML);
    for (const open of region.querySelectorAll('details[open]')) {
      const same = next.querySelector(`[id="${CSS.escape(open.id)}"]`);
      if (same) same.open = true;
    }
    region.replaceChildren(...next.childNodes);
  }
}

async function keepFresh() {
  try {
    if (document.visibilityState !== 'hidden') await refresh(false);
  } catch {
    // The emulator is restarting, or gone: the page stays as it is.
  }
  setTimeout(keepFresh, REFRESH_MS);
}
setTimeout(keepFresh, REFRESH_MS);

// Another script has changed what the page shows.
document.addEventListener('dashboard-changed', () => refresh(false).catch(() => undefined));

const search = document.querySelector('[data-search]');
let typing;

/** Shows what matches, at once and at an address of its own. */
async function find() {
  clearTimeout(typing);
  const wanted = new URLSearchParams();
  for (const [name, value] of new FormData(search)) if (value.trim() !== '') wanted.set(name, value);
  history.replaceState(null, '', location.pathname + (wanted.size === 0 ? '' : `?${wanted}`));
  try {
    await refresh(true);
    const found = document.querySelector('.found, [data-live] .empty');
    document.getElementById('announcement').textContent = found ? found.textContent : '';
  } catch {
    search.submit();
  }
}

if (search) {
  search.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(find, TYPING_MS);
  });
  search.addEventListener('submit', (event) => {
    event.preventDefault();
    find();
  });
}
