package demo

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// ports are the ports of a Node's switch by name.
func (w *world) ports(ctx context.Context, node string) (map[string]api.PortRecord, error) {
	var all []api.PortRecord
	if err := w.agent(node).JSON(ctx, "/ports", nil, &all); err != nil {
		return nil, err
	}
	byName := map[string]api.PortRecord{}
	for _, p := range all {
		byName[p.Name] = p
	}
	return byName, nil
}

// through runs f and says how many packets of node-a left by one port and came back by
// another meanwhile. If none left, or fewer came back, that is an error.
func (w *world) through(ctx context.Context, out, back string, f func() error) (string, error) {
	before, err := w.ports(ctx, "node-a")
	if err != nil {
		return "", err
	}
	if err := f(); err != nil {
		return "", err
	}
	var went, came uint64
	for end := time.Now().Add(waitAtMost); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		after, err := w.ports(ctx, "node-a")
		if err != nil {
			return "", err
		}
		went = after[out].Tx.Packets - before[out].Tx.Packets
		came = after[back].Rx.Packets - before[back].Rx.Packets
		if went > 0 && came == went { // otherwise some are still on their way
			return fmt.Sprintf("%d packets out at %s, %d back by %s", went, out, came, back), nil
		}
	}
	return "", fmt.Errorf("%d packets went out at %s, %d came back by %s", went, out, came, back)
}

// redirect connects to web-a, and from it.
func redirect(ctx context.Context, w *world) (string, error) {
	return w.through(ctx, "antrea-tc-tap0", "antrea-tc-tap1", func() error {
		_, err := connect("client-a", "web-a:80", "client-b", "web-a:80", "web-a", "db-b:3306")(ctx, w)
		return err
	})
}

// layer7 sends data that an application-layer policy allows.
func layer7(ctx context.Context, w *world) (string, error) {
	return w.through(ctx, "antrea-l7-tap0", "antrea-l7-tap1", func() error {
		for _, from := range []string{"client-a", "client-b"} {
			if _, err := w.transfer(ctx, from, fmt.Sprintf("web-a:%d", apiPort), 5*megabyte); err != nil {
				return err
			}
		}
		return nil
	})
}

// mirror captures the copies while web-b connects to db-a: both sides' packets, as they
// arrive and as they leave.
func mirror(ctx context.Context, w *world) (string, error) {
	s, err := w.raw("node-a", "antrea-tc-tap2")
	if err != nil {
		return "", err
	}
	defer s.Close()
	if _, err := w.greet(ctx, "web-b", "db-a:3306"); err != nil {
		return "", err
	}
	const wantRequests, wantAnswered = 3, 2 // SYN, ACK and FIN at least; SYN ACK and the greeting
	requests, answered := 0, 0
	for requests < wantRequests || answered < wantAnswered {
		frame, err := s.Receive(waitAtMost)
		if err != nil {
			return "", err
		}
		if frame == nil {
			return "", fmt.Errorf("%d copies to db-a and %d from it, of a whole connection", requests, answered)
		}
		switch src, dst := addressesOf(frame); {
		case src == w.addresses["web-b"] && dst == w.addresses["db-a"]:
			requests++
		case src == w.addresses["db-a"] && dst == w.addresses["web-b"]:
			answered++
		}
	}
	return fmt.Sprintf("%d copies of packets to db-a and %d of packets from it, at least", requests, answered), nil
}

// addressesOf are the IPv4 addresses of a frame; not valid if it has none.
func addressesOf(frame []byte) (src, dst netip.Addr) {
	var c captured
	if c.frame(frame) != nil || len(c.ends) == 0 || !c.ends[0][0].Is4() {
		return src, dst
	}
	return c.ends[0][0], c.ends[0][1]
}
