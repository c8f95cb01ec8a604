package console

import (
	"net/http"

	"tributary/internal/operator"
)

// route is one line of the table: how it is reached, who may, and what it does.
// Exactly one of show, act and serve is set.
type route struct {
	method string
	path   string // below Root
	role   operator.Role

	template string                         // of show
	live     bool                           // the page has a region that follows what happens
	embeds   bool                           // the page shows a document of ours
	show     func(*request) (page, error)   // a page
	act      func(*request) (string, error) // changes something; answers where to go
	serve    func(*request) error           // answers by itself
}

// routes is everything an operator can reach after signing in.
func (c *Console) routes() []route {
	return []route{
		{method: "GET", path: "/{$}", role: operator.Viewer, template: "overview", live: true, show: c.overview},

		{method: "GET", path: "/transactions", role: operator.Viewer, template: "transactions", live: true, show: c.sales.transactions},
		{method: "POST", path: "/views", role: operator.Viewer, act: c.sales.saveView},
		{method: "GET", path: "/find", role: operator.Viewer, serve: c.sales.find},
		{method: "GET", path: "/transactions.csv", role: operator.Viewer, serve: c.sales.export},
		{method: "GET", path: "/retry", role: operator.Acting, template: "together", show: c.sales.retryPreview},
		{method: "POST", path: "/retry", role: operator.Acting, act: c.sales.retryTogether},
		{method: "GET", path: "/chosen", role: operator.Acting, template: "chosen", show: c.sales.chosen},
		{method: "POST", path: "/chosen", role: operator.Acting, act: c.sales.actOnChosen},
		{method: "GET", path: "/transactions/{operation}", role: operator.Viewer, template: "transaction", live: true, embeds: true, show: c.sales.transaction},
		{method: "GET", path: "/transactions/{operation}/paper/{resource}", role: operator.Viewer, serve: c.sales.showPaper},
		{method: "POST", path: "/transactions/{operation}/retry", role: operator.Acting, act: c.sales.retry},
		{method: "POST", path: "/transactions/{operation}/decide", role: operator.Acting, act: c.sales.decide},
		{method: "GET", path: "/transactions/{operation}/documents/{resource}", role: operator.Viewer, serve: c.sales.fetchDocument},
		{method: "GET", path: "/transactions/{operation}/files/{what}", role: operator.Viewer, serve: c.sales.fetchStored},

		{method: "GET", path: "/deliveries", role: operator.Viewer, template: "deliveries", live: true, show: c.deliveries.deliveries},
		{method: "GET", path: "/deliveries/events/{event}", role: operator.Viewer, template: "event", live: true, show: c.deliveries.event},
		{method: "POST", path: "/deliveries/events/{event}/redeliver", role: operator.Acting, act: c.deliveries.redeliver},
		{method: "POST", path: "/deliveries/latest", role: operator.Acting, act: c.deliveries.redeliverLatest},
		{method: "GET", path: "/deliveries/replay", role: operator.Acting, template: "replay", show: c.deliveries.replay},
		{method: "POST", path: "/deliveries/replay", role: operator.Acting, act: c.deliveries.startReplay},

		{method: "GET", path: "/clients", role: operator.Viewer, template: "clients", show: c.clients.clients},
		{method: "POST", path: "/clients", role: operator.Admin, serve: c.clients.createClient},
		{method: "GET", path: "/clients/{client}", role: operator.Viewer, template: "client", embeds: true, show: c.clients.clientPage},
		{method: "GET", path: "/clients/{client}/preview.pdf", role: operator.Viewer, serve: c.clients.preview},
		{method: "GET", path: "/clients/{client}/logo", role: operator.Viewer, serve: c.clients.logo},
		{method: "POST", path: "/clients/{client}/look", role: operator.Admin, serve: c.clients.configureLook},
		{method: "POST", path: "/clients/{client}/settings", role: operator.Admin, serve: c.clients.configureSettings},
		{method: "POST", path: "/clients/{client}/logo", role: operator.Admin, act: c.clients.setLogo},
		{method: "POST", path: "/clients/{client}/configuration", role: operator.Admin, act: c.clients.configure},
		{method: "POST", path: "/clients/{client}/keys/rotate", role: operator.Admin, serve: c.clients.rotateKey},
		{method: "POST", path: "/clients/{client}/keys/{kid}/promote", role: operator.Admin, act: c.clients.promoteKey},
		{method: "POST", path: "/clients/{client}/keys/{kid}/revoke", role: operator.Admin, act: c.clients.revokeKey},

		{method: "GET", path: "/suppliers", role: operator.Viewer, template: "suppliers", show: c.suppliers},
		{method: "GET", path: "/suppliers/{client}/{company}", role: operator.Viewer, template: "supplier", live: true, show: c.supplier},
		{method: "GET", path: "/lookups", role: operator.Viewer, template: "lookups", live: true, show: c.lookups},
		{method: "GET", path: "/lookups/{client}/{batch}", role: operator.Viewer, template: "batch", live: true, show: c.batch},
		{method: "GET", path: "/periods", role: operator.Viewer, template: "periods", live: true, show: c.periods},
		{method: "GET", path: "/periods/{period}", role: operator.Viewer, template: "period", live: true, show: c.period},
		{method: "GET", path: "/queues", role: operator.Viewer, template: "queues", live: true, show: c.settings.queues},

		{method: "GET", path: "/authorities", role: operator.Viewer, template: "authorities", live: true, show: c.authorities},

		{method: "GET", path: "/alerts", role: operator.Viewer, template: "alerts", live: true, show: c.settings.alerts},
		{method: "POST", path: "/alerts/{alert}/acknowledge", role: operator.Acting, act: c.settings.acknowledge},
		{method: "GET", path: "/audit", role: operator.Viewer, template: "audit", show: c.settings.audit},

		{method: "GET", path: "/operators", role: operator.Admin, template: "operators", show: c.settings.operators},
		{method: "POST", path: "/operators", role: operator.Admin, serve: c.settings.createOperator},
		{method: "POST", path: "/operators/{name}/{change}", role: operator.Admin, serve: c.settings.changeOperator},
		{method: "POST", path: "/sessions/{session}/end", role: operator.Admin, act: c.settings.endSession},
		{method: "GET", path: "/account", role: operator.Viewer, template: "account", show: c.settings.ownAccount},
		{method: "POST", path: "/account/password", role: operator.Viewer, act: c.settings.changePassword},
		{method: "GET", path: "/account/second", role: operator.Viewer, template: "factors", show: c.entry.secondFactors},
		{method: "POST", path: "/account/second", role: operator.Viewer, serve: c.entry.enrol},
		{method: "POST", path: "/account/second/codes", role: operator.Viewer, serve: c.entry.renewCodes},
		{method: "POST", path: "/account/second/remove", role: operator.Viewer, act: c.entry.removeFactor},

		{method: "GET", path: "/simulators", role: operator.Viewer, template: "simulators", show: c.simulators},
		{method: "POST", path: "/simulators/{country}/script", role: operator.Acting, act: c.setScript},

		{method: "POST", path: "/sign-out", role: operator.Viewer, act: c.entry.signOut},
	}
}

// mount puts the table and what needs no session on the mux.
func (c *Console) mount() {
	for _, rt := range c.routes() {
		c.mux.Handle(rt.method+" "+Root+rt.path, c.handle(rt))
		if rt.live {
			c.mux.HandleFunc("GET "+Root+"/live"+rt.path, c.live(rt))
		}
	}
	c.mux.HandleFunc("GET "+Root+"/assets/{digest}/{name}", c.assets.serve)
	c.mux.HandleFunc("GET "+Root+"/sign-in", c.entry.signInPage)
	c.mux.HandleFunc("POST "+Root+"/sign-in", c.entry.signIn)
	c.mux.HandleFunc("GET "+secondPath, c.entry.secondPage)
	c.mux.HandleFunc("POST "+secondPath, c.entry.second)
	if c.cfg.OIDC != nil {
		c.mux.HandleFunc("GET "+oidcPath+"/begin", c.entry.oidcBegin)
		c.mux.HandleFunc("GET "+OIDCFinish, c.entry.oidcFinish)
	}
	c.mux.HandleFunc(Root+"/", c.front.unknown)
	c.mux.Handle(Root, http.RedirectHandler(Root+"/", http.StatusSeeOther))
}
