package answer

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/ports/memory"
)

// Offline makes a client of a pipeline without an agent. It loads the source into a switch with
// ports in memory, one for each name. The ports named in tunnels are tunnel ports. The API is
// the agent's.
func Offline(from pipeline.Source, tunnels ...string) (*api.Client, error) {
	loaded, err := from.Load(pipeline.Options{})
	if err != nil {
		return nil, err
	}
	p := New(loaded)
	if _, err := p.addMemoryPorts(tunnels); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p.Client(from.String()), nil
}

// Client makes a client in this process. Its errors have name in place of a socket.
func (p *Answers) Client(name string) *api.Client {
	return api.NewClientBy(name, inProcess{p.Routes(Registry(p))})
}

// addMemoryPorts adds a port to the switch for each port name in its files.
func (p *Answers) addMemoryPorts(tunnels []string) (map[uint32]*memory.Port, error) {
	isTunnel := make(map[string]bool)
	for _, name := range tunnels {
		isTunnel[name] = true
	}
	all := make(map[uint32]*memory.Port)
	for no, name := range p.Switch.Names().OpenPorts() {
		_, aside := p.Made[name]
		m := memory.New(name, memory.Options{Aside: aside, Tunnel: isTunnel[name]})
		if err := p.Local.AddSecuredPort(no, m, p.Secured[no]); err != nil {
			return nil, err
		}
		all[no] = m
	}
	return all, nil
}

// inProcess is a transport that calls the handler. The reader gets an answer as it is written,
// so it may be a stream.
type inProcess struct{ api http.Handler }

// RoundTrip implements http.RoundTripper. The handler waits for the reader. Closing the body
// ends the request's context.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	from, to := io.Pipe()
	w := &streamed{header: http.Header{}, begun: make(chan struct{}), body: to}
	go w.runAnswer(t.api, r.WithContext(ctx))
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		return nil, errors.Join(context.Cause(ctx), from.Close())
	}
	return &http.Response{StatusCode: w.status, Header: w.sent, Body: &streamedBody{from, cancel}, Request: r}, nil
}

// streamed is a response that is read while it is written.
type streamed struct {
	header, sent http.Header // sent is a copy of header when begun was closed
	status       int         // 0 before that
	begun        chan struct{}
	body         *io.PipeWriter
}

// runAnswer writes the whole answer.
func (w *streamed) runAnswer(api http.Handler, r *http.Request) {
	api.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	w.body.Close()
}

// Header implements http.ResponseWriter, as the methods below do.
func (w *streamed) Header() http.Header { return w.header }

// WriteHeader begins the answer. Only the first call has an effect.
func (w *streamed) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	}
}

// Write waits until b is read. The error says that the reader has closed the body.
func (w *streamed) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// FlushError begins the answer, so that the reader gets all that was written.
// http.ResponseController calls it.
func (w *streamed) FlushError() error {
	_, err := w.Write(nil)
	return err
}

// streamedBody is the body of a streamed response.
type streamedBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the request.
func (b *streamedBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
