package web

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Pictures of the last benchmark: the directory of `antrail bench --save` has a bench.json and
// a picture of each profile, PROFILE.svg. The browser gets them as images, which cannot run
// scripts.

// Plots are the pictures of a benchmark.
type Plots struct {
	Began time.Time `json:"began"`
	// Names are the names of the pictures, without .svg.
	Names []string `json:"names"`
}

func (p *Page) answerPlots(w http.ResponseWriter, _ *http.Request) {
	plots, err := readPlots(p.plots)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(plots)
}

// readPlots lists the pictures in a directory; none for "".
func readPlots(dir string) (*Plots, error) {
	plots := &Plots{Names: []string{}}
	if dir == "" {
		return plots, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, plots); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".svg"); ok && f.Type().IsRegular() {
			plots.Names = append(plots.Names, name)
		}
	}
	return plots, err
}

// answerPlot serves one of the listed pictures, and no other file.
func (p *Page) answerPlot(w http.ResponseWriter, r *http.Request) {
	plots, err := readPlots(p.plots)
	name := r.PathValue("name")
	if err != nil || !slices.Contains(plots.Names, name) {
		http.NotFound(w, r)
		return
	}
	// Opened as a document, the picture may do no more than as an image.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	w.Header().Set("Content-Type", "image/svg+xml")
	http.ServeFile(w, r, filepath.Join(p.plots, name+".svg"))
}
