package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/switchd"
)

// A Node's facts are what its agent has to know before it can open a port: its pod CIDRs and
// its own addresses. They come from the Node object. The agent stores them in a file beside the
// socket, so that the next agent can start while the API is down.

// restoreTime is how long an agent with stored facts waits for the API. It forwards nothing
// meanwhile.
const restoreTime = 2 * time.Second

// askFacts asks the API for the Node's facts until they are complete.
func askFacts(ctx context.Context, c *config.Config, api *kube.Source, log *slog.Logger) (*config.NodeFacts, error) {
	if kept, err := readFacts(c.FactsFile(), c.NodeName); err == nil {
		return restoreFacts(ctx, c, api, kept, log)
	}
	told := ""
	for {
		n, err := tryFacts(ctx, c, api)
		if err == nil {
			return n, writeFacts(c.FactsFile(), n)
		}
		if told != err.Error() {
			told = err.Error()
			log.Warn("waiting for the API to tell of this Node", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryTime):
		}
	}
}

// restoreFacts asks the API once, and uses the stored facts if no answer comes within
// restoreTime.
func restoreFacts(ctx context.Context, c *config.Config, api *kube.Source, kept *config.NodeFacts, log *slog.Logger) (*config.NodeFacts, error) {
	soon, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()
	n, err := tryFacts(soon, c, api)
	if err == nil {
		return n, writeFacts(c.FactsFile(), n)
	}
	log.Warn("the API does not describe this Node; using the stored facts", "error", err)
	return kept, nil
}

// tryFacts asks the API once. The error names the missing fact.
func tryFacts(ctx context.Context, c *config.Config, api *kube.Source) (*config.NodeFacts, error) {
	own, err := api.Node(ctx, c.NodeName)
	if err != nil {
		return nil, err
	}
	n := &config.NodeFacts{Node: c.NodeName, PodCIDRs: own.PodCIDRs, Addresses: own.Addresses}
	if len(n.PodCIDRs) == 0 {
		return nil, fmt.Errorf("node %s has no podCIDRs yet", c.NodeName)
	}
	if len(n.Addresses) == 0 {
		return nil, fmt.Errorf("node %s has no InternalIP yet", c.NodeName)
	}
	if len(c.Kubernetes.ServiceCIDRs) > 0 {
		return n, nil
	}
	n.ServiceCIDRs, err = api.ServiceCIDRs(ctx)
	if err == nil && len(n.ServiceCIDRs) == 0 {
		err = errors.New("there are none")
	}
	if err != nil && c.Kubernetes.ProxyAll {
		return nil, fmt.Errorf("proxyAll needs the ranges of ClusterIPs, but ServiceCIDRs cannot be read; set kubernetes.serviceCIDRs: %w", err)
	}
	return n, nil
}

// maxFacts bounds the file.
const maxFacts = 1 << 16

// readFacts reads the facts that an agent of this Node stored.
func readFacts(path, node string) (*config.NodeFacts, error) {
	b, err := switchd.ReadOwnFile(path, maxFacts)
	if err != nil {
		return nil, err
	}
	n := &config.NodeFacts{}
	if err := json.Unmarshal(b, n); err != nil {
		return nil, err
	}
	if n.Node != node || len(n.PodCIDRs) == 0 || len(n.Addresses) == 0 {
		return nil, fmt.Errorf("%s: the facts are of Node %q, not of %q, or incomplete", path, n.Node, node)
	}
	return n, nil
}

// writeFacts writes the file. It makes the directory too: an agent with --take-over may be the
// first that needs it.
func writeFacts(path string, n *config.NodeFacts) error {
	b, err := json.Marshal(n)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = switchd.WriteOwnFile(path, append(b, '\n'))
	}
	return err
}
