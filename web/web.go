// Package web is a page that shows a switch at work. It has the pipeline as a map with live
// rates, tables with their entries and objects, and packets that walk the map.
//
//	web.go      the paths and the headers
//	serveweb.go times and limits of peers (package internal/halfopen)
//	api.go      the requests that are forwarded to the Nodes' agents
//	eventstream.go counters as they change, as Server-Sent Events
//	map.go      the pipeline as a picture (package diagram)
//	plots.go    pictures of the last benchmark
//	page.go     the page, and its Nodes
//	sampler.go  counters, read once for all streams
//	admit.go    admission: the token, sessions, the Host header
//	static/     HTML, CSS and ES modules, as the browser gets them
//
// The page knows only what the agent's API says (package agent). A Page has that API as an
// http.Handler, in the same process or at the other end of a socket, of one or several Nodes.
// There is no build chain and no outside resource: the browser runs the files of static/. The
// Content-Security-Policy forbids everything else. It also makes the browser refuse scripts
// that turn text into markup, so that a name in an object cannot become an element.
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
	// Nodes are the Nodes of the page, at least one. The first is the default.
	Nodes []Node
	// Watch answers POST /trace/live for all Nodes; nil for each Node's own answer.
	Watch http.Handler
	// Invite receives the token that admits the next browser: once in New, and again after each
	// use. New returns the first error. A later error closes the page to new browsers.
	Invite func(token string) error
	// Plots is a directory of antrail bench --save; "" for none.
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

// policy allows the browser to load only what this page serves. Other pages may not frame it,
// and text cannot become markup or script.
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
		h.Set("Connection", "close") // a stranger holds no connection
		http.Error(w, "401: run antrail page, and open the URL that it prints", http.StatusUnauthorized)
	default:
		p.inside.ServeHTTP(w, r)
	}
}
