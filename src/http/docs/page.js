/* global SwaggerUIBundle */

// Addresses are relative, so that the page also works below a path of a reverse proxy.
const api = new URLSearchParams(location.search).get('api') === 'workspace' ? 'workspace' : 'app'
document.querySelector(`nav a[data-api=${api}]`).setAttribute('aria-current', 'page')

SwaggerUIBundle({
  url: `docs/${api}.json`,
  dom_id: '#reference',
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  // Never ask a server of others whether the document is valid.
  validatorUrl: null,
})
