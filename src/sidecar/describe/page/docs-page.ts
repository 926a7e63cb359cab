import { hash } from 'node:crypto';
import { html } from '../../../http/html';
import type { OpenApiDocument } from '../document';
import { contents, groupsOf } from './contents';
import { errorsSection, introduction, sharedErrors } from './introduction';
import { operationSection } from './operation-section';
import { prose } from './prose';
import { STYLE_CODE } from './style-code';
import { STYLE_FRAME } from './style-frame';
import { STYLE_PARTS } from './style-parts';

const STYLE = STYLE_FRAME + STYLE_PARTS + STYLE_CODE;

/** Lets the page use its own style and nothing else: no script, and nobody's address. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join(';');

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5f5a"/><circle cx="11" cy="16" r="4.5" fill="none" stroke="#fff" stroke-width="3"/><path d="M15.500 16H26v5M21 16v4" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/></svg>',
)}`;

/** The OpenAPI document as one page, as text to send. */
export function docsPage(document: OpenApiDocument): string {
  const { title, version } = document.info;
  const groups = groupsOf(document);
  const operations = groups.flatMap((group) => group.operations.map(({ operation }) => operation));
  const isShared = sharedErrors(operations);
  const head = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} ${version} · API</title>
<link rel="icon" href="${ICON}">
<style>`;
  const body = html`</style>
</head>
<body id="top">
<a class="skip" href="#content">Skip to the content</a>
<header class="side"><div>
<p class="brand"><img src="${ICON}" alt="" width="28" height="28"><a href="#top">${title}</a></p>
<nav class="wide" aria-label="Contents">${contents(groups)}</nav>
<details class="narrow"><summary>Contents</summary><nav aria-label="Contents">${contents(groups)}</nav></details>
</div></header>
<main id="content" tabindex="-1">
${introduction(document)}
${groups.map(
  ({
    id,
    name,
    description,
    operations: placed,
  }) => html`<section class="group" id="${id}" aria-labelledby="${id}-title">
<div class="group-head"><h2 id="${id}-title">${name}</h2>${prose(description)}</div>
${placed.map((one) => operationSection(one, document, (status, code) => !isShared(status, code)))}
</section>`,
)}
${errorsSection(document, operations)}
</main>
<a class="to-top" href="#top">Contents</a>
</body>
</html>
`;
  // As it is: a style sheet knows no entities.
  return `${head}${STYLE}${body}`;
}
