package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/switchd"
)

// A Node's facts are what its agent has to know before it can open anything:
// where its pods are, and its own addresses. The Node's object tells them. They
// lie in a file beside the socket, so that an agent that is started while the API
// is away goes on as the one before.

// nodeFacts is what the API says of a Node.
type nodeFacts struct {
	Node         string         `json:"node"`
	PodCIDRs     []netip.Prefix `json:"podCIDRs"`
	Addresses    []netip.Addr   `json:"addresses"`
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs,omitempty"`
}

// factsFile is where they are kept.
func (c *Config) factsFile() string { return c.besideSocket("node.json") }

// maxFacts bounds the file.
const maxFacts = 1 << 16

// recallTime is how long the API may take to answer an agent that knows what the Node
// was: it forwards nothing before.
const recallTime = 2 * time.Second

// askFacts asks the API for the Node's facts, until it tells enough.
func askFacts(ctx context.Context, c *Config, api *kube.Source, log *slog.Logger) (*nodeFacts, error) {
	if kept, err := readFacts(c.factsFile(), c.NodeName); err == nil {
		return recallFacts(ctx, c, api, kept, log)
	}
	told := ""
	for {
		n, err := tryFacts(ctx, c, api)
		if err == nil {
			return n, n.write(c.factsFile())
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

// recallFacts asks once; what was kept counts when there is no answer soon.
func recallFacts(ctx context.Context, c *Config, api *kube.Source, kept *nodeFacts, log *slog.Logger) (*nodeFacts, error) {
	soon, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	n, err := tryFacts(soon, c, api)
	if err == nil {
		return n, n.write(c.factsFile())
	}
	log.Warn("the API does not tell of this Node; it is taken for what it was", "error", err)
	return kept, nil
}

// tryFacts asks once. The error says what is missing.
func tryFacts(ctx context.Context, c *Config, api *kube.Source) (*nodeFacts, error) {
	own, err := api.Node(ctx, c.NodeName)
	if err != nil {
		return nil, err
	}
	n := &nodeFacts{Node: c.NodeName, PodCIDRs: own.PodCIDRs, Addresses: own.Addresses}
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
		return nil, fmt.Errorf("proxyAll needs the ranges of ClusterIPs, and ServiceCIDRs cannot be read (kubernetes.serviceCIDRs tells them, too): %w", err)
	}
	return n, nil
}

// nodePortAddresses are the Node's, and that of its loopback as Antrea has it: there
// is no such thing for ::1.
func (n *nodeFacts) nodePortAddresses() []netip.Addr {
	all := slices.Clone(n.Addresses)
	if slices.ContainsFunc(all, netip.Addr.Is4) {
		all = append(all, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return all
}

// readFacts reads what an agent of this Node kept.
func readFacts(path, node string) (*nodeFacts, error) {
	b, err := switchd.ReadOwnFile(path, maxFacts)
	if err != nil {
		return nil, err
	}
	n := &nodeFacts{}
	if err := json.Unmarshal(b, n); err != nil {
		return nil, err
	}
	if n.Node != node || len(n.PodCIDRs) == 0 || len(n.Addresses) == 0 {
		return nil, fmt.Errorf("%s: not of this Node", path)
	}
	return n, nil
}

// write keeps the facts. Who takes over where no agent runs is the first to need the
// directory.
func (n *nodeFacts) write(path string) error {
	b, err := json.Marshal(n)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = switchd.WriteOwnFile(path, append(b, '\n'))
	}
	return err
}

// learn fills in what the configuration leaves to the API, and checks the whole.
func (c *Config) learn(n *nodeFacts) error {
	if len(c.PodCIDRs) == 0 {
		c.PodCIDRs = n.PodCIDRs
	}
	if len(c.Gateway.Addresses) == 0 {
		for _, p := range c.PodCIDRs {
			c.Gateway.Addresses = append(c.Gateway.Addresses, netip.PrefixFrom(p.Masked().Addr().Next(), p.Bits()))
		}
	}
	if !c.Tunnel.LocalAddress.IsValid() {
		c.Tunnel.LocalAddress = n.Addresses[0]
	}
	c.learned = true
	c.setDefaults()
	return c.check()
}
