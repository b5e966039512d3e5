package demo

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// connect checks that TCP connects and that the right pod greets. The pod must see the
// client's own address. pairs is from, to, from, to, …
func connect(pairs ...string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		var seen []string
		for i := 0; i < len(pairs); i += 2 {
			from, to := pairs[i], pairs[i+1]
			g, err := w.greet(ctx, from, to)
			if err != nil {
				return "", fmt.Errorf("%s to %s: %w", from, to, err)
			}
			name, _, _ := strings.Cut(to, ":")
			if want := w.sourceOf(from); g.name != name || g.source != want {
				return "", fmt.Errorf("%s to %s: %s answered and saw %s, want %s", from, to, g.name, g.source, want)
			}
			seen = append(seen, from+" to "+to)
		}
		return strings.Join(seen, ", "), nil
	}
}

// sourceOf is the address at which pods see a pod or their own Node. A Node's process
// connects to pods from its gateway's address.
func (w *world) sourceOf(name string) string {
	for _, n := range w.lab.Topology.Nodes {
		if n.Name == name {
			return n.Gateway.Of(w.v6).String()
		}
	}
	return w.addresses[name].String()
}

const megabyte = 1 << 20

// bulkBytes is the size of a large transfer, in bytes.
var bulkBytes int64 = 100 * megabyte

// bulk sends bulkBytes across Nodes; the receiver's SHA-256 must be the sender's.
func bulk(ctx context.Context, w *world) (string, error) {
	r, err := w.transfer(ctx, "client-a", w.sink("client-b"), bulkBytes)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("client-a to client-b: %d MB, SHA-256 %.12s… matches, %.2f Gbit/s", r.bytes/megabyte, r.sum, r.gbits()), nil
}

// bothDirections sends a fifth of bulkBytes across Nodes, both ways at the same time.
func bothDirections(ctx context.Context, w *world) (string, error) {
	type outcome struct {
		r   result
		err error
	}
	back := make(chan outcome, 1)
	go func() {
		r, err := w.transfer(ctx, "client-b", w.sink("client-a"), bulkBytes/5)
		back <- outcome{r, err}
	}()
	r, err := w.transfer(ctx, "client-a", w.sink("client-b"), bulkBytes/5)
	b := <-back
	if err := errors.Join(err, b.err); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d MB each, both SHA-256 match, %.2f and %.2f Gbit/s", r.bytes/megabyte, r.gbits(), b.r.gbits()), nil
}

// result is a finished transfer.
type result struct {
	bytes int64
	took  time.Duration
	sum   string
}

func (r *result) gbits() float64 { return float64(r.bytes) * 8 / 1e9 / r.took.Seconds() }

// sink is the server of a client pod that answers with a digest.
func (w *world) sink(pod string) string { return fmt.Sprintf("%s:%d", pod, sinkPort) }

// transfer sends n random bytes from one client pod to another and compares
// the digests of both ends.
func (w *world) transfer(ctx context.Context, from, to string, n int64) (result, error) {
	return w.transferAll(ctx, from, to, io.LimitReader(rand.NewChaCha8([32]byte{byte(n >> 20), 1}), n))
}

// transferAll sends all bytes of a reader in the same way.
func (w *world) transferAll(ctx context.Context, from, to string, all io.Reader) (result, error) {
	c, err := w.dial(ctx, from, to, waitAtMost)
	if err != nil {
		return result{}, fmt.Errorf("%s to %s: %w", from, to, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if _, err := readGreeting(c); err != nil {
		return result{}, err
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	r, err := send(c.(*net.TCPConn), all)
	if err != nil {
		return r, fmt.Errorf("%s to %s: %w", from, to, err)
	}
	return r, nil
}

// send writes all bytes and reads the answer.
func send(c *net.TCPConn, all io.Reader) (result, error) {
	h := sha256.New()
	began := time.Now()
	sent, err := io.Copy(c, io.TeeReader(all, h))
	if err != nil {
		return result{}, fmt.Errorf("after %d bytes: %w", sent, err)
	}
	if err := c.CloseWrite(); err != nil {
		return result{}, err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return result{}, fmt.Errorf("no digest after %d bytes: %w", sent, err)
	}
	r := result{bytes: sent, took: time.Since(began), sum: fmt.Sprintf("%x", h.Sum(nil))}
	if want := fmt.Sprintf("%d %s", sent, r.sum); strings.TrimSpace(line) != want {
		return r, fmt.Errorf("the receiver's count and SHA-256 are %q, the sender's %q", strings.TrimSpace(line), want)
	}
	return r, nil
}
