const { SwaggerUIBundle } = window;

const darkMode = window.matchMedia('(prefers-color-scheme: dark)');
const followDarkMode = () => document.documentElement.classList.toggle('dark-mode', darkMode.matches);
darkMode.addEventListener('change', followDarkMode);
followDarkMode();

function CodeSamples() {
  const withSamples =
    (Responses, { React }) =>
    (props) => {
      const { path, method, specSelectors } = props;
      const operation = specSelectors.specJson().getIn(['paths', path, method]);
      const samples = operation?.get('x-codeSamples')?.toJS() ?? [];
      if (samples.length === 0) return React.createElement(Responses, props);
      const shown = samples.map(({ label, source }) =>
        React.createElement(
          'details',
          { key: label },
          React.createElement('summary', null, label),
          React.createElement('pre', { tabIndex: 0 }, source),
        ),
      );
      return React.createElement(
        React.Fragment,
        null,
        React.createElement(
          'section',
          { className: 'code-samples responses-inner' },
          React.createElement('h4', null, 'Examples'),
          shown,
        ),
        React.createElement(Responses, props),
      );
    };
  return { wrapComponents: { responses: withSamples } };
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
    plugins: [CodeSamples, XmlExamples, ResolveUnfolded],
    onComplete: () => {
      document.title = ui.specSelectors.specJson().getIn(['info', 'title']);
    },
  });
}

void show();
