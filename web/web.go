// Package web is the page on which a person sees a switch at work: the pipeline
// as a map with live rates, tables with their entries, entries with the objects
// behind them, and packets that walk the map.
//
//	web.go      what is served, and under which headers
//	serveweb.go times and limits of those who ask (package internal/halfopen)
//	api.go      which questions to the Nodes' agents are handed on
//	eventstream.go counters as they change, as Server-Sent Events
//	map.go      the pipeline as a picture (package diagram)
//	plots.go    pictures of the last benchmark
//	page.go     the page, and the Nodes that are shown
//	sampler.go  counters, asked for once for all readers
//	admit.go    who is let in: the token, sessions, the Host header
//	static/     HTML, CSS and ES modules, as the browser gets them
//
// The page knows of the switch what the agent's API says (package agent) and no
// more; a Page has that API as an http.Handler, in the same process or at the
// other end of a socket, of one Node or of several. There is no build chain and no outside resource: the
// files of static/ are what runs. The Content-Security-Policy forbids everything
// else, and makes the browser itself refuse a script that would turn text into
// markup, so that a name in an object cannot become an element.
//
// Goroutines: one for each request, of net/http.
package web

import (
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
)

//go:embed static
var static embed.FS

// Options are what a Page needs.
type Options struct {
	// Nodes are those that are shown, at least one; the first when a browser names
	// none.
	Nodes []Node
	// Watch answers POST /trace/live for all Nodes; nil for each Node's own answer.
	Watch http.Handler
	// Invite is told the token that lets the next browser in: once by New, and
	// again each time one was used. An error of the first is New's; one of a later
	// call closes the page to new browsers.
	Invite func(token string) error
	// Plots is a directory with what antrail bench --save wrote; "" for none.
	Plots string
	// Log gets a line for peers whose connections are closed; nil for none.
	Log *slog.Logger
}

// New makes a page, and invites the first browser.
func New(o Options) (*Page, error) {
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, err
	}
	p := &Page{watch: o.Watch, plots: o.Plots, log: o.Log}
	p.door.invite = o.Invite
	for _, n := range o.Nodes {
		p.nodes = append(p.nodes, &shownNode{Node: n, sampler: sampler{ask: n.Counters}})
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /events", p.answerEvents)
	mux.HandleFunc("GET /map.svg", p.answerMap)
	mux.HandleFunc("GET /map.css", p.answerMapStyle)
	mux.HandleFunc("GET /shown", p.answerShown)
	mux.HandleFunc("GET /plots", p.answerPlots)
	mux.HandleFunc("GET /plots/{name}", p.answerPlot)
	p.addAPI(mux)
	p.inside = http.NewCrossOriginProtection().Handler(mux)
	return p, p.door.renew()
}

// policy lets the browser load nothing but what this page serves, show it in no
// frame of others, and make no markup or script of text.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	w = &patient{ResponseWriter: w}
	switch {
	case !namesAddress(r.Host):
		h.Set("Connection", "close")
		http.Error(w, "421: ask for this page by its IP address or as localhost", http.StatusMisdirectedRequest)
	case r.URL.Path == entrance && r.Method == http.MethodGet:
		p.door.enter(w, r)
	case !p.door.knows(r):
		h.Set("Connection", "close") // a stranger keeps no place
		http.Error(w, "401: run antrail page, and open the URL that it prints", http.StatusUnauthorized)
	default:
		p.inside.ServeHTTP(w, r)
	}
}
