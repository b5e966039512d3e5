package answer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/door"
)

// A switch without an agent can be asked like an agent. The API of a pipeline runs in the
// asking process, over the switch's API. Its entries have no objects, as with flow files.

// connectTimeout is how long the process at a socket may take to answer what it is.
const connectTimeout = 5 * time.Second

// Connect makes a client of the agent or switch at a socket. If neither answers, the client is
// an agent's, and its first request fails. The error says that the switch has a version of the
// API that this program does not know.
func Connect(ctx context.Context, socket string) (*api.Client, error) {
	c := api.NewClient(socket)
	if !c.IsSwitch(ctx, connectTimeout) {
		return c, nil
	}
	d := door.Dial(socket)
	info, err := d.Info(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	clock := func() int64 { return info.ClockNS + int64(time.Since(start)) }
	loaded, err := pipeline.NewPipeline(pipeline.Options{Remote: d, Clock: clock})
	if err != nil {
		return nil, err
	}
	p := New(loaded)
	mux := p.Routes(Registry(p))
	mux.HandleFunc("POST /trace/live", func(w http.ResponseWriter, r *http.Request) { p.AnswerLive(w, r, "") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("the process at %s is a switch; only an agent (antrail agent) answers %s", socket, r.URL.Path), http.StatusNotFound)
	})
	return api.NewClientBy(socket, inProcess{mux}), nil
}
