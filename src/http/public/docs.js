const { SwaggerUIBundle } = window;

const darkMode = window.matchMedia('(prefers-color-scheme: dark)');
const followDarkMode = () => document.documentElement.classList.toggle('dark-mode', darkMode.matches);
darkMode.addEventListener('change', followDarkMode);
followDarkMode();

/** Adds examples; gives names where Swagger UI has none or others than are seen, and the focus back to what opened a dialog. */
function Parts({ React: { createElement, Fragment, useEffect, useState } }) {
  return {
    wrapComponents: {
      responses: (Responses) => (props) => {
        const { path, method, specSelectors } = props;
        const operation = specSelectors.specJson().getIn(['paths', path, method]);
        const samples = operation?.get('x-codeSamples')?.toJS() ?? [];
        const shown = samples.map(({ label, source }) =>
          createElement(
            'details',
            { key: label },
            createElement('summary', null, label),
            createElement('pre', { tabIndex: 0 }, source),
          ),
        );
        const section = { className: 'code-samples responses-inner' };
        return createElement(
          Fragment,
          null,
          shown.length > 0 && createElement('section', section, createElement('h4', null, 'Examples'), shown),
          createElement(Responses, props),
        );
      },
      DeepLink:
        () =>
        ({ text }) =>
          createElement('span', null, text),
      CloseIcon: (Icon) => () =>
        createElement(Icon, { role: 'img', 'aria-hidden': false, 'aria-label': 'Close' }),
      Button:
        (Button) =>
        ({ 'aria-label': _other, ...props }) =>
          createElement(Button, props),
      authorizationPopup: (Popup) => (props) => {
        const [opener] = useState(document.activeElement);
        useEffect(() => {
          // Each field takes the focus when it comes: the last one would keep it, out of sight of the first.
          document.querySelector('.auth-container input')?.focus();
          return () => opener.focus();
        }, [opener]);
        return createElement(Popup, props);
      },
      JsonSchema_string: (Field) => (props) =>
        createElement('label', { 'aria-label': props.description }, createElement(Field, props)),
    },
  };
}

/** Swagger UI would make an example of the schema, and says that it can't. */
const XmlExamples = {
  afterLoad() {
    const known = this.fn.jsonSchema202012;
    const made = known.getXmlSampleSchema;
    known.getXmlSampleSchema = (schema, config, example) =>
      typeof example === 'string' ? example : made(schema, config, example);
  },
};

/** The components that a part of a description refers to, and those that they refer to. */
function componentsOf({ components }, part, found = {}) {
  for (const [, kind, name] of JSON.stringify(part).matchAll(/"#\/components\/(\w+)\/([^"/]+)"/g)) {
    if (found[kind]?.[name]) continue;
    found[kind] = { ...found[kind], [name]: components[kind][name] };
    componentsOf({ components }, components[kind][name], found);
  }
  return found;
}

/** Swagger UI reads the whole description at each click: only unfolded operations are resolved. */
function ResolveUnfolded({ fn: { resolveSubtree } }) {
  const resolveUnfolded = (api, path, options) => {
    const [part, name] = path;
    const item = api[part]?.[name] ?? {};
    const unfolded = {
      paths: {},
      webhooks: {},
      components: componentsOf(api, item),
      [part]: { [name]: item },
    };
    return resolveSubtree({ ...api, ...unfolded }, path, options);
  };
  return { fn: { resolveSubtree: resolveUnfolded } };
}

/** The description names the root of its host. A proxy may put a prefix before it, as before this page. */
const BelowPrefix = {
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec: (update) => (api) => {
          const url = new URL('.', window.location).pathname;
          return update({ ...api, servers: [{ ...api.servers[0], url }] });
        },
      },
    },
  },
};

/** Beyond this number, all operations at once make each click slow. */
const MOST_UNFOLDED = 40;

async function docExpansion() {
  const { paths } = await (await fetch('openapi.json')).json();
  const count = Object.values(paths).flatMap((item) => Object.keys(item)).length;
  return count > MOST_UNFOLDED ? 'none' : 'list';
}

async function show() {
  const ui = SwaggerUIBundle({
    url: 'openapi.json',
    dom_id: '#api',
    deepLinking: true,
    displayRequestDuration: true,
    docExpansion: await docExpansion().catch(() => 'list'),
    defaultModelsExpandDepth: -1,
    // Secrets are forgotten with the page.
    persistAuthorization: false,
    // Swagger's own validator would be sent the address of this service.
    validatorUrl: null,
    syntaxHighlight: { theme: 'tomorrow-night' },
    plugins: [Parts, XmlExamples, ResolveUnfolded, BelowPrefix],
    onComplete: () => {
      document.title = ui.specSelectors.specJson().getIn(['info', 'title']);
    },
  });
}

void show();
