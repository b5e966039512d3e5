package door

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/antrail/antrail/conntrack"
)

// clientConns are the connections of a Client's switch.
type clientConns struct{ c *Client }

// Connections implements Switch.
func (c *Client) Connections() Connections { return clientConns{c} }

func (a clientConns) stats() ConnectionStats {
	return get[ConnectionStats](a.c, "/v1/conntrack/stats", nil)
}

// Stats implements Connections, as the methods below do.
func (a clientConns) Stats() conntrack.Stats { return a.stats().Stats }

// Zones are the counts and limits of zones.
func (a clientConns) Zones() []conntrack.ZoneLimit { return a.stats().Zones }

// Limits are the limits of zones.
func (a clientConns) Limits() ZoneLimits { return a.stats().Limits }

// Ports are the connections of ports.
func (a clientConns) Ports() []conntrack.PortStats { return a.stats().Ports }

// Revalidated counts outcomes.
func (a clientConns) Revalidated() [Outcomes]uint64 { return a.stats().Revalidated }

// Dump are the connections that match f. If the switch goes away, it ends early and counts a
// failure.
func (a clientConns) Dump(f conntrack.Filter) iter.Seq[conntrack.Conn] {
	return func(yield func(conntrack.Conn) bool) {
		text, err := json.Marshal(f)
		if err != nil {
			a.c.countFailure(err)
			return
		}
		resp, err := a.c.send(context.Background(), http.MethodGet, "/v1/conntrack", url.Values{"filter": {string(text)}}, nil)
		if err != nil {
			a.c.countFailure(err)
			return
		}
		defer resp.Body.Close()
		for d := json.NewDecoder(resp.Body); ; {
			var one conntrack.Conn
			if err := d.Decode(&one); err == io.EOF {
				return
			} else if err != nil {
				a.c.countFailure(err)
				return
			}
			if !yield(one) {
				return
			}
		}
	}
}

// Flush removes the connections that match f.
func (a clientConns) Flush(f conntrack.Filter) int {
	var n Flushed
	a.c.countFailure(a.c.sendValue(http.MethodPost, "/v1/conntrack/flush", f, &n))
	return n.Flushed
}

// Purge removes the connections of addresses and paths.
func (a clientConns) Purge(p *Purge) {
	a.c.countFailure(a.c.sendValue(http.MethodPost, "/v1/conntrack/purge", p, nil))
}

// Shield stops endpoints from beginning connections.
func (a clientConns) Shield(endpoints []netip.AddrPort, until int64) {
	a.c.countFailure(a.c.sendValue(http.MethodPost, "/v1/conntrack/shield", ShieldRequest{endpoints, until}, nil))
}

// Revalidate walks the first packet of each connection again.
func (a clientConns) Revalidate(ctx context.Context, n *NodePorts) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return a.c.do(ctx, http.MethodPost, "/v1/conntrack/revalidate", nil, bytes.NewReader(text), nil)
}
