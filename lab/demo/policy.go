package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// attempt is a connection that a policy must drop.
type attempt struct{ from, to string }

// webDenied tries other ports than TCP 80 of the web pods, from both Nodes.
func webDenied(ctx context.Context, w *world) (string, error) {
	return w.denied(ctx, "IngressMetric", []attempt{
		{"client-a", "web-a:8081"}, {"client-a", "web-a:443"}, {"client-a", "web-a:81"}, {"client-a", "web-a:22"},
		{"client-b", "web-a:8081"}, {"db-a", "web-a:80"}, {"db-b", "web-a:80"},
	})
}

// dbDenied tries other ports and clients than TCP 3306 from web pods, and ping.
func dbDenied(ctx context.Context, w *world) (string, error) {
	n, err := w.dropsDuring(ctx, func() error {
		if _, err := w.ping("client-a", "db-a", silence); !errors.Is(err, errNoReply) {
			return fmt.Errorf("ping of db-a from client-a: %v, want silence", err)
		}
		return nil
	}, "IngressDefaultRule")
	if err == nil && n == 0 {
		err = errors.New("no drop of the ping was counted in IngressDefaultRule")
	}
	if err != nil {
		return "", err
	}
	return w.denied(ctx, "IngressDefaultRule", []attempt{
		{"client-a", "db-a:3306"}, {"client-b", "db-a:3306"}, {"db-b", "db-a:3306"},
		{"client-a", "db-a:5432"}, {"client-b", "db-a:5432"}, {"db-b", "db-a:3307"},
	})
}

// webSends tries connections that web pods may not open.
func webSends(ctx context.Context, w *world) (string, error) {
	return w.denied(ctx, "EgressMetric", []attempt{
		{"web-a", "client-a:5001"}, {"web-a", "client-b:5001"}, {"web-a", "db-a:5432"}, {"web-a", "db-b:5432"},
		{"web-a", "web-b:443"}, {"web-a", "outside:81"},
	})
}

// denied makes all attempts at once. None may get an answer, and the table of node-a must
// count the drops.
func (w *world) denied(ctx context.Context, table string, all []attempt) (string, error) {
	n, err := w.dropsDuring(ctx, func() error {
		var wg sync.WaitGroup
		errs := make([]error, len(all))
		for i, a := range all {
			wg.Go(func() { errs[i] = w.wantSilence(ctx, a) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}, table)
	if err == nil && n < uint64(len(all)) {
		err = fmt.Errorf("%d attempts, but only %d drops counted in %s", len(all), n, table)
	}
	return fmt.Sprintf("%d of %d attempts met silence, %d drops in %s", len(all), len(all), n, table), err
}

func (w *world) wantSilence(ctx context.Context, a attempt) error {
	c, err := w.dial(ctx, a.from, a.to, silence)
	if err == nil {
		c.Close()
		return fmt.Errorf("%s is connected to %s", a.from, a.to)
	}
	if !isTimeout(err) {
		return fmt.Errorf("%s to %s: %w, want silence", a.from, a.to, err)
	}
	return nil
}
