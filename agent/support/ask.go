package support

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// waitAtMost bounds one answer: a request that hangs must not delay the rest.
const waitAtMost = 20 * time.Second

// question is a path of the API and the file that its answer is in.
type question struct {
	file, path string
	query      url.Values
}

var (
	asJSON  = url.Values{"format": {"json"}}
	asNames = url.Values{"names": {"1"}}
)

// questions are the requests to the agent or switch. Objects and drops are JSON, which has all
// that the text has.
var questions = []question{
	{"state/healthz.txt", "/healthz", nil}, {"state/readyz.txt", "/readyz", nil},
	{"state/nodes.json", "/nodes", asJSON}, {"state/pods.json", "/pods", asJSON}, {"state/services.json", "/services", asJSON},
	{"state/endpoints.json", "/endpoints", asJSON}, {"state/policies.json", "/policies", asJSON}, {"state/egresses.json", "/egresses", asJSON},
	{"state/trafficcontrols.json", "/trafficcontrols", asJSON}, {"state/watches.json", "/watches", asJSON},
	{"dumps/flows.txt", "/flows", asNames}, {"dumps/groups.txt", "/groups", asNames}, {"dumps/meters.txt", "/meters", nil},
	{"dumps/ports.txt", "/ports", asNames}, {"dumps/ports.json", "/ports", asJSON}, {"dumps/tables.txt", "/tables", nil}, {"dumps/workers.txt", "/workers", nil},
	{"dumps/conntrack.txt", "/conntrack", url.Values{"stats": {"1"}}}, {"dumps/conntrack-stats.txt", "/conntrack/stats", nil},
	{"dumps/cache.txt", "/cache", nil}, {"dumps/fdb.txt", "/fdb", nil},
	{"drops/by-table.txt", "/drops", nil}, {"drops/sums.txt", "/sums", nil},
	{"metrics.txt", "/metrics", nil},
}

// addAnswers adds the answers. A switch without an agent answers that it knows no objects.
func (c *collection) addAnswers(ctx context.Context) {
	for _, q := range questions {
		if text, ok := c.answer(ctx, q.file, func(ctx context.Context) ([]byte, error) { return c.o.Client.Get(ctx, q.path, q.query) }); ok {
			c.addFile(q.file, text)
		}
	}
	c.askDrops(ctx)
}

func (c *collection) answer(ctx context.Context, file string, get func(context.Context) ([]byte, error)) ([]byte, bool) {
	ctx, cancel := context.WithTimeout(ctx, waitAtMost)
	defer cancel()
	text, err := get(ctx)
	if err != nil {
		c.fail(file, err)
	}
	return text, err == nil
}

// askDrops adds the last dropped packets, and a walk of each against the current entries.
func (c *collection) askDrops(ctx context.Context) {
	const name = "drops/last.json"
	var lost api.DroppedPackets
	if _, ok := c.answer(ctx, name, func(ctx context.Context) ([]byte, error) {
		return nil, c.o.Client.JSON(ctx, "/drops/last", nil, &lost)
	}); !ok {
		return
	}
	traced := lost.Packets[max(0, len(lost.Packets)-c.o.Drops):]
	for i := range traced {
		c.trace(ctx, &traced[i])
	}
	if c.o.Redact { // the bytes are the pods' own
		for i := range lost.Packets {
			lost.Packets[i].Frame = nil
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(&lost); err != nil {
		c.fail(name, err)
		return
	}
	c.addFile(name, b.Bytes())
}

// trace adds the walk of a dropped packet. One that was dropped on its way out has no port of
// entry.
func (c *collection) trace(ctx context.Context, p *api.DroppedPacket) {
	if p.Leaving || p.Tunnel != nil || len(p.Frame) == 0 {
		return
	}
	name := fmt.Sprintf("drops/trace-%d.txt", p.No)
	r := api.TraceRequest{Flow: fmt.Sprintf("in_port=%d", p.Port.No), Packet: hex.EncodeToString(p.Frame)}
	if text, ok := c.answer(ctx, name, func(ctx context.Context) ([]byte, error) {
		return c.o.Client.Post(ctx, "/trace", url.Values{"explain": {"1"}}, &r)
	}); ok {
		c.addFile(name, append([]byte(fmt.Sprintf("# dropped at %s: %s, %s\n", p.Time.UTC().Format(time.RFC3339Nano), p.Reason, p.Packet)), text...))
	}
}
