package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/control/store"
)

// Objects from the Kubernetes API. Until the agent has read all resources once, the switch is
// empty or keeps the previous agent's entries. Pods' ports open then, or stay as the previous
// agent left them.

// joined is a connection to an API server, and the store that it fills.
type joined struct {
	store *store.Store
	api   *kube.Source
}

// joinCluster reads from the API what the configuration does not say.
func joinCluster(ctx context.Context, c *config.Config, log *slog.Logger) (*joined, error) {
	objects := store.NewStore(store.GivenEndpoints)
	api, err := kube.New(kube.Config{Kubeconfig: c.Kubernetes.Kubeconfig, Node: c.NodeName, Namespace: os.Getenv("POD_NAMESPACE"), Log: log}, objects)
	if err != nil {
		return nil, err
	}
	own, err := learnNode(ctx, c, api, log)
	if err != nil {
		return nil, err
	}
	objects.Apply(store.Change{Source: config.Source, Set: []cluster.Object{own}})
	return &joined{objects, api}, nil
}

// learnNode asks the API about this Node, and returns its NodeConfig. An external Node's
// NodeConfig is in a file.
func learnNode(ctx context.Context, c *config.Config, api *kube.Source, log *slog.Logger) (*cluster.NodeConfig, error) {
	if c.External() {
		return c.LearnExternal()
	}
	n, err := askFacts(ctx, c, api, log)
	if err != nil {
		return nil, err
	}
	if err := c.Learn(n); err != nil {
		return nil, fmt.Errorf("the configuration with the API's facts of Node/%s: %w", c.NodeName, err)
	}
	return c.NodeConfig(n), nil
}

// runKube follows the API until ctx ends. The store's first change is the first state of all
// resources, so the switch never has half of it.
func (l *live) runKube(ctx context.Context) error {
	first := true
	_, end := l.store.Follow(func(u store.Update) {
		if first {
			first, u.Changed = false, nil
			l.portsMu.Lock()
			l.restored, l.begun = nil, true
			l.portsMu.Unlock()
		}
		l.update(u)
	})
	defer end()
	done := make(chan struct{})
	go l.runSource(ctx, done)
	select {
	case <-done:
		return nil
	case <-l.api.Synced():
	}
	l.cni.open()
	l.runRetries(done)
	return nil
}

// runSource fills the store until ctx ends.
func (l *live) runSource(ctx context.Context, done chan<- struct{}) {
	l.api.Run(ctx)
	close(done)
}

// missing says which objects were not read yet, and which entries are in force.
func (l *live) missing() string {
	text := "not read yet"
	if l.api != nil {
		if err := l.api.Missing(); err != nil {
			text += fmt.Sprintf(" (%v)", err)
		}
	}
	if l.api == nil || l.objects.Inherits() {
		text += "; the previous agent's entries are in force"
	}
	return text
}
