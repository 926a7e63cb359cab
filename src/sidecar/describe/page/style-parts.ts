/** What stands on the page: badges, tables of names, answers. */
export const STYLE_PARTS = `
.method { display: inline-block; padding: 0.0625rem 0.375rem; border-radius: 4px; font: 700 0.6875rem/1.5 var(--mono); letter-spacing: 0.02em; }
.method-get { background: var(--get-soft); color: var(--get); }
.method-post { background: var(--post-soft); color: var(--post); }
.method-delete { background: var(--delete-soft); color: var(--delete); }
.route { display: flex; flex-wrap: wrap; align-items: center; gap: 0.375rem 0.625rem; margin: 0.625rem 0 1rem; }
.route .method { font-size: 0.8125rem; padding: 0.125rem 0.5rem; }
.route code { font-size: 0.9375rem; font-weight: 600; }
.open, .type { color: var(--muted); font-size: 0.875rem; font-weight: 400; letter-spacing: 0; }
.text p code, td code, .values code { padding: 0.0625rem 0.25rem; border-radius: 4px; background: var(--sunken); }
.route code, .route .open { padding: 0; background: none; }

.names { width: 100%; border-collapse: collapse; border-top: 1px solid var(--line); }
.names thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.names tr { border-bottom: 1px solid var(--line); }
.names th, .names td { padding: 0.625rem 0; text-align: left; vertical-align: top; }
.names th { width: 11.5rem; padding-right: 1.25rem; font-weight: 400; }
.names th code { font-weight: 650; color: var(--text); }
.names td p { margin: 0; }
.names td p + p { margin-top: 0.25rem; }
.names .depth-1 { padding-left: 1.125rem; }
.names .depth-2 { padding-left: 2.25rem; }
.names .depth-3 { padding-left: 3.375rem; }
.note { display: block; color: var(--muted); font-size: 0.8125rem; line-height: 1.45; }
.required { color: var(--delete); font-weight: 600; }
.values, .says { color: var(--muted); font-size: 0.875rem; }
.says { font-style: normal; }
.errors th { width: 14.5rem; }
.alone .errors th { width: 19rem; }
.besides { margin: 0.75rem 0 0; color: var(--muted); font-size: 0.9375rem; }

.shape + .shape { margin-top: 2rem; }
.answer { padding: 0.875rem 0; border-top: 1px solid var(--line); }
.answer > p { margin-bottom: 0.375rem; }
.answer .names { margin: 0.5rem 0; }
.answer details { margin-top: 0.375rem; }
.status { display: inline-block; font: 700 0.8125rem/1.5 var(--mono); padding: 0.0625rem 0.375rem; border-radius: 4px; }
.status-2, .status-3 { background: var(--good-soft); color: var(--good); }
.status-4 { background: var(--post-soft); color: var(--post); }
.status-5 { background: var(--delete-soft); color: var(--delete); }
summary { cursor: pointer; }
.text summary { display: inline-block; padding: 0.125rem 0; color: var(--accent); }
.text summary::before { content: '+'; display: inline-block; width: 1.125rem; font: 700 1rem/1 var(--mono); }
.text [open] > summary::before { content: '\\2212'; }
.text summary { list-style: none; }
.text summary::-webkit-details-marker { display: none; }
.text details > .shape { padding: 0.5rem 0 0.5rem 1.125rem; }

@media (max-width: 60rem) {
  body { display: block; }
  .side { border-right: 0; border-bottom: 1px solid var(--line); }
  .side > div { position: relative; max-height: none; padding: 0.75rem var(--gap); }
  .side .brand { margin: 0; padding: 0; min-height: 2.75rem; }
  .wide { display: none; }
  .narrow { display: block; }
  .narrow summary { position: absolute; top: 0.75rem; right: var(--gap); padding: 0.625rem 0; color: var(--accent); font-weight: 600; }
  .narrow nav p { padding-left: 0; }
  .narrow nav li a { padding: 0.5rem 0; }
  .start, .operation { padding-block: 2rem; }
  .group-head { padding-top: 2rem; }
  .to-top { display: block; position: fixed; right: 1rem; bottom: 1rem; padding: 0.5rem 1rem; border-radius: 99px; background: var(--accent); color: var(--ground); font-size: 0.875rem; font-weight: 600; text-decoration: none; box-shadow: 0 2px 10px rgb(0 0 0 / 25%); }
}
@media (max-width: 40rem) {
  .names, .names tbody, .names tr, .names th, .names td { display: block; width: 100%; }
  .names tr { padding: 0.75rem 0; }
  .names th, .names td { padding-block: 0; }
  .names th { padding-bottom: 0.25rem; }
  .names .depth-1 + td { padding-left: 1.125rem; }
  .names .depth-2 + td { padding-left: 2.25rem; }
  .names .depth-3 + td { padding-left: 3.375rem; }
  .note { display: inline; margin-left: 0.5rem; }
}
@media print {
  body { display: block; font-size: 10pt; }
  .side, .skip, .to-top { display: none; }
  .start, .operation { display: block; padding: 1rem 0; }
  .examples { margin-top: 1rem; }
  .operation h3, .code figcaption { break-after: avoid; }
  .names tr { break-inside: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
`;
