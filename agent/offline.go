package agent

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports/memory"
)

// Offline is a client of a pipeline that runs nowhere: the source is loaded
// into a switch with ports in memory, one for each name, and asked through the
// same API as an agent. The ports named tunnels are tunnel ports.
func Offline(from Source, tunnels ...string) (*Client, error) {
	p, err := from.load(options{})
	if err != nil {
		return nil, err
	}
	if _, err := p.addMemoryPorts(tunnels); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Client{socket: from.String(), http: &http.Client{Transport: inProcess{p.routes(registry(p))}}}, nil
}

// addMemoryPorts gives the switch a port for each name that its files have.
func (p *pipeline) addMemoryPorts(tunnels []string) (map[uint32]*memory.Port, error) {
	isTunnel := make(map[string]bool)
	for _, name := range tunnels {
		isTunnel[name] = true
	}
	all := make(map[uint32]*memory.Port)
	for no, name := range namedPorts(p.sw.Names()) {
		_, aside := p.made[name]
		m := memory.New(name, memory.Options{Aside: aside, Tunnel: isTunnel[name]})
		if err := p.local.AddSecuredPort(no, m, p.secured[no]); err != nil {
			return nil, err
		}
		all[no] = m
	}
	return all, nil
}

// namedPorts are the ports of the switch that have names.
func namedPorts(n *flow.Names) map[uint32]string {
	const last = 0xfeff // OpenFlow 1.0, section 5.2.1: numbers above are reserved
	named := make(map[uint32]string)
	for no := uint32(1); no <= last; no++ {
		if name := n.Port(no); name != "" {
			named[no] = name
		}
	}
	return named
}

// inProcess answers requests by calling what serves them.
type inProcess struct{ api http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &written{header: http.Header{}, status: http.StatusOK}
	t.api.ServeHTTP(w, r)
	return &http.Response{StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body), Request: r}, nil
}

// written is a response in memory.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter, as the others do.
func (w *written) Header() http.Header { return w.header }

// WriteHeader notes the status.
func (w *written) WriteHeader(status int) { w.status = status }

// Write appends to the body.
func (w *written) Write(b []byte) (int, error) { return w.body.Write(b) }
