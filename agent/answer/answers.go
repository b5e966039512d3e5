package answer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
)

// Answers answers requests about a pipeline.
type Answers struct {
	*pipeline.Pipeline
	looks mapLooks
}

// New makes the answers of a pipeline.
func New(p *pipeline.Pipeline) *Answers { return &Answers{Pipeline: p} }

// answer has the forms of one answer: as text, as values, and for objects as a table.
type answer struct {
	text   func(*Answers, io.Writer, query) error
	values func(*Answers, query) (any, error)
	table  func(*Answers, query) (*api.Listing, error) // nil if the answer lists no objects
}

// query has the parameters of a request.
type query struct {
	table       string            // name or number, "" for all
	port        string            // name, number or Pod, "" for all
	filter      string            // of entries, as in ovs-ofctl; "" for all
	objects     map[string]string // whose entries are selected, by parameter; empty for all
	connections conntrack.Filter
	names       bool // names in place of numbers
	stats       bool
	sorted      bool
	wide        bool // more columns, or more lines
	explain     bool // with the objects behind each line
	json        bool
	listed      bool         // JSON of a table, with the objects
	version     flow.Version // that entries and groups are spelled in
	limit       int          // entries or connections at most; 0 for all
}

func parseQuery(v url.Values) (query, error) {
	q := query{table: v.Get("table"), port: v.Get("which"), filter: v.Get("filter"), objects: requestedObjects(v), stats: true}
	for name, to := range map[string]*bool{"names": &q.names, "stats": &q.stats, "sort": &q.sorted, "wide": &q.wide, "explain": &q.explain} {
		if !v.Has(name) {
			continue
		}
		yes, err := strconv.ParseBool(v.Get(name))
		if err != nil {
			return q, fmt.Errorf("%s=%q is neither 0 nor 1", name, v.Get(name))
		}
		*to = yes
	}
	var err error
	if text := v.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 {
			return q, fmt.Errorf("limit=%.60q is not a number above 0", text)
		}
	}
	if q.version, err = flow.VersionNamed(v.Get("version")); err != nil {
		return q, err
	}
	if q.connections, err = parseFilter(v); err != nil {
		return q, err
	}
	switch v.Get("format") {
	case "", "text":
	case "json":
		q.json = true
	case "table":
		q.listed = true
	default:
		return q, fmt.Errorf("format=%q is none of text, json and table", v.Get("format"))
	}
	return q, nil
}

// WriteJSON answers with v as JSON, or with status 400 and err.
func WriteJSON(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	e.Encode(v)
}
