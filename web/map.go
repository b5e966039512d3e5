package web

import (
	"encoding/json"
	"net/http"

	"github.com/antrail/antrail/diagram"
)

// answerMap answers GET /map.svg. Package diagram draws the map without counters. The browser
// adds the rates, which it computes from counters, by the ids of tables and edges.

func (p *Page) answerMap(w http.ResponseWriter, r *http.Request) {
	n := p.at(w, r)
	if n == nil {
		return
	}
	text, err := n.sampler.counters(r.Context())
	var c struct {
		Pipeline *diagram.Map `json:"pipeline"`
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || c.Pipeline == nil {
		http.Error(w, "the pipeline cannot be drawn now", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	if err := c.Pipeline.SVG(w, diagram.Options{Unstyled: true}); err != nil {
		return // the browser is gone
	}
}

// answerMapStyle answers GET /map.css, the colours of the map: the page's policy allows no
// style in a picture.
func (p *Page) answerMapStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Write([]byte(diagram.Styles(diagram.Auto)))
}
