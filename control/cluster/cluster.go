package cluster

import "maps"

// Cluster is an immutable snapshot of all objects, made by the store. Any goroutine may read
// the maps; none may change them. A changed object is another pointer in the next snapshot.
// A kind without a change shares its map with the next snapshot.
//
// The keys of each map have that map's kind, with two exceptions. AntreaPolicies holds
// ClusterNetworkPolicies and Antrea's NetworkPolicies, and Groups holds ClusterGroups and
// Groups. Tiers includes the default tiers, EndpointSlices the derived ones.
type Cluster struct {
	NodeConfigs      map[Key]*NodeConfig
	Nodes            map[Key]*Node
	Namespaces       map[Key]*Namespace
	Pods             map[Key]*Pod
	ExternalEntities map[Key]*ExternalEntity
	Services         map[Key]*Service
	EndpointSlices   map[Key]*EndpointSlice
	NetworkPolicies  map[Key]*NetworkPolicy
	AntreaPolicies   map[Key]*AntreaPolicy
	Tiers            map[Key]*Tier
	Groups           map[Key]*Group
	Egresses         map[Key]*Egress
	ExternalIPPools  map[Key]*ExternalIPPool
	TrafficControls  map[Key]*TrafficControl
	Traceflows       map[Key]*Traceflow

	// ServiceSlices are the EndpointSlices of each Service, in order of their keys.
	ServiceSlices map[Name][]*EndpointSlice
}

// EmptyCluster returns a snapshot with the default tiers only.
func EmptyCluster() *Cluster {
	return &Cluster{
		NodeConfigs:      map[Key]*NodeConfig{},
		Nodes:            map[Key]*Node{},
		Namespaces:       map[Key]*Namespace{},
		Pods:             map[Key]*Pod{},
		ExternalEntities: map[Key]*ExternalEntity{},
		Services:         map[Key]*Service{},
		EndpointSlices:   map[Key]*EndpointSlice{},
		NetworkPolicies:  map[Key]*NetworkPolicy{},
		AntreaPolicies:   map[Key]*AntreaPolicy{},
		Tiers:            DefaultTiers(),
		Groups:           map[Key]*Group{},
		Egresses:         map[Key]*Egress{},
		ExternalIPPools:  map[Key]*ExternalIPPool{},
		TrafficControls:  map[Key]*TrafficControl{},
		Traceflows:       map[Key]*Traceflow{},
		ServiceSlices:    map[Name][]*EndpointSlice{},
	}
}

// DefaultTierPriorities are the priorities of the tiers that Antrea creates.
var DefaultTierPriorities = map[string]int32{
	"emergency":   50,
	"securityops": 100,
	"networkops":  150,
	"platform":    200,
	DefaultTier:   250,
	"baseline":    BaselineTier,
}

// DefaultTiers are the tiers that every cluster has.
func DefaultTiers() map[Key]*Tier {
	tiers := make(map[Key]*Tier, len(DefaultTierPriorities))
	for name, priority := range DefaultTierPriorities {
		k := Key{Kind: KindTier, Name: name}
		tiers[k] = &Tier{Meta: Meta{Key: k}, Priority: priority}
	}
	return tiers
}

// NodeConfig returns the NodeConfig of the named Node, or nil.
func (c *Cluster) NodeConfig(node string) *NodeConfig {
	return c.NodeConfigs[Key{Kind: KindNodeConfig, Name: node}]
}

// Node returns the named Node, or nil.
func (c *Cluster) Node(name string) *Node { return c.Nodes[Key{Kind: KindNode, Name: name}] }

// Namespace returns the named Namespace, or nil. A set of manifests may lack the namespace
// of a Pod: see NamespaceLabels.
func (c *Cluster) Namespace(name string) *Namespace {
	return c.Namespaces[Key{Kind: KindNamespace, Name: name}]
}

// NamespaceLabels returns the labels of a namespace for selectors. If the snapshot lacks the
// Namespace, the only label is its name, which every Namespace has.
func (c *Cluster) NamespaceLabels(name string) Labels {
	if ns := c.Namespace(name); ns != nil {
		return ns.Labels
	}
	return Labels{NamespaceNameLabel: name}
}

// LogsPolicies reports whether a namespace asks for a log of what its K8s
// NetworkPolicies allow and drop.
func (c *Cluster) LogsPolicies(namespace string) bool {
	ns := c.Namespace(namespace)
	return ns != nil && ns.LogPolicies
}

// NamespaceNameLabel is set on every Namespace by the API server.
const NamespaceNameLabel = "kubernetes.io/metadata.name"

// Pod returns the named Pod, or nil.
func (c *Cluster) Pod(n Name) *Pod { return c.Pods[Key{KindPod, n.Namespace, n.Name}] }

// Service returns the named Service, or nil.
func (c *Cluster) Service(n Name) *Service { return c.Services[Key{KindService, n.Namespace, n.Name}] }

// SlicesOf returns the EndpointSlices of a Service in the order of their keys. The caller
// must not write the slice.
func (c *Cluster) SlicesOf(n Name) []*EndpointSlice { return c.ServiceSlices[n] }

// Tier returns the named Tier, or nil.
func (c *Cluster) Tier(name string) *Tier { return c.Tiers[Key{Kind: KindTier, Name: name}] }

// SelectsPod reports whether the set chooses a Pod by its labels and those of its namespace.
func (c *Cluster) SelectsPod(s PodSet, p *Pod) bool {
	if s.Pods == nil && s.Namespaces == nil {
		return false
	}
	if s.Pods != nil && !s.Pods.Matches(p.Labels) {
		return false
	}
	return s.Namespaces == nil || s.Namespaces.Matches(c.NamespaceLabels(p.Key.Namespace))
}

// Object returns the object with that key as an Object, or nil.
func (c *Cluster) Object(k Key) Object {
	if set := c.Set(k.Kind); set != nil {
		return set.Get(k)
	}
	return nil
}

// KindSet is one of the snapshot's maps, for objects of any type.
type KindSet interface {
	// Get returns an object, or nil.
	Get(Key) Object
	// Own replaces the map by a copy that may be written.
	Own()
	// Put adds an object or replaces the one of its key.
	Put(Object)
	// Remove removes the object of a key.
	Remove(Key)
}

// Set returns the map that holds objects of a kind, or nil for an unknown kind.
func (c *Cluster) Set(k Kind) KindSet {
	switch k {
	case KindNodeConfig:
		return setOf(&c.NodeConfigs)
	case KindNode:
		return setOf(&c.Nodes)
	case KindNamespace:
		return setOf(&c.Namespaces)
	case KindPod:
		return setOf(&c.Pods)
	case KindExternalEntity:
		return setOf(&c.ExternalEntities)
	case KindService:
		return setOf(&c.Services)
	case KindEndpointSlice:
		return setOf(&c.EndpointSlices)
	case KindNetworkPolicy:
		return setOf(&c.NetworkPolicies)
	case KindClusterNetworkPolicy, KindAntreaNetworkPolicy:
		return setOf(&c.AntreaPolicies)
	case KindTier:
		return setOf(&c.Tiers)
	case KindClusterGroup, KindGroup:
		return setOf(&c.Groups)
	case KindEgress:
		return setOf(&c.Egresses)
	case KindExternalIPPool:
		return setOf(&c.ExternalIPPools)
	case KindTrafficControl:
		return setOf(&c.TrafficControls)
	case KindTraceflow:
		return setOf(&c.Traceflows)
	}
	return nil
}

// objectMap is a KindSet over a map of one type of object.
type objectMap[T any, P interface {
	*T
	Object
}] struct{ m *map[Key]P }

func setOf[T any, P interface {
	*T
	Object
}](m *map[Key]P) KindSet {
	return objectMap[T, P]{m}
}

func (s objectMap[T, P]) Get(k Key) Object {
	if obj, ok := (*s.m)[k]; ok {
		return obj
	}
	return nil
}

func (s objectMap[T, P]) Own()         { *s.m = maps.Clone(*s.m) }
func (s objectMap[T, P]) Put(o Object) { (*s.m)[o.Metadata().Key] = o.(P) }
func (s objectMap[T, P]) Remove(k Key) { delete(*s.m, k) }
