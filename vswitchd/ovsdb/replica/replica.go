package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// retryTime is how long a Replica waits before it connects again.
const retryTime = time.Second

// Replica is a copy of a database.
type Replica struct {
	DB *store.Database

	path string
	lock string
	log  *slog.Logger

	mu  sync.Mutex
	now *session // nil while there is no connection
}

// Socket is PATH of a text "unix:PATH". The error is for another text.
func Socket(remote string) (string, error) {
	path, ok := strings.CutPrefix(remote, "unix:")
	if !ok || path == "" {
		return "", fmt.Errorf("%q: expected unix:PATH", remote)
	}
	return path, nil
}

// Open connects to the server at a unix socket and copies its rows. It takes a lock there, so that no
// second process follows the rows. It returns an error if the server does not answer, has another
// database, or has given the lock to another client.
func Open(ctx context.Context, path, lock string, s *schema.Database, log *slog.Logger) (*Replica, error) {
	r := &Replica{DB: store.New(s), path: path, lock: lock, log: log}
	r.DB.Log = log
	r.DB.Elsewhere(r.send)
	return r, r.connect(ctx)
}

// connect begins a session, and copies the server's rows.
func (r *Replica) connect(ctx context.Context) error {
	n, err := openSession(ctx, r.path, r.DB.Schema, r.lock)
	if err != nil {
		return err
	}
	if err := r.DB.Follow(n.initial, true); err != nil {
		n.close()
		return fmt.Errorf("the rows of %s: %w", r.path, err)
	}
	if !r.hasRoot() {
		n.close()
		return fmt.Errorf("the database at %s has no row in table Open_vSwitch: run ovs-vsctl --no-wait init", r.path)
	}
	r.set(n)
	return nil
}

func (r *Replica) hasRoot() (has bool) {
	r.DB.Read(func(v store.View) {
		for range v.Named("Open_vSwitch") {
			has = true
		}
	})
	return has
}

func (r *Replica) set(n *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = n
}

func (r *Replica) session() *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Run applies the server's changes until ctx ends. It connects again after a connection has ended.
func (r *Replica) Run(ctx context.Context) error {
	for {
		n := r.session()
		err := n.follow(ctx, func(updates map[string]any) error { return r.DB.Follow(updates, false) })
		r.set(nil)
		n.close()
		if ctx.Err() != nil {
			return nil
		}
		r.log.Warn("the connection to the database's server has ended", "socket", r.path, "why", err)
		for err != nil {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(retryTime):
			}
			if err = r.connect(ctx); err != nil {
				r.log.Info("the database's server does not answer", "socket", r.path, "why", err)
			}
		}
	}
}

// Close ends the connection.
func (r *Replica) Close() error {
	if n := r.session(); n != nil {
		n.close()
	}
	return nil
}

// send makes the server apply changes.
func (r *Replica) send(changes []store.Change) error {
	n := r.session()
	if n == nil {
		return store.ErrAway
	}
	ops, err := operations(changes, n.has)
	if err != nil || len(ops) == 0 {
		return err
	}
	result, err := n.call("transact", append([]any{r.DB.Schema.Name}, ops...)...)
	if err != nil {
		return errors.Join(store.ErrAway, err)
	}
	results, _ := result.([]any)
	for _, one := range results {
		if refusal := member(one, "error"); refusal != nil {
			return fmt.Errorf("the database's server refuses a transaction: %v: %v", refusal, member(one, "details"))
		}
	}
	return nil
}
