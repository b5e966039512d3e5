package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Feature gates. Antrea's gates are the only names that spec.features of a NodeConfig
// and kubernetes.features of an agent's configuration take. A gate that has no effect
// here is an error: an operator that sets it expects something to happen.

// gateKind is what a feature gate of Antrea's does here.
type gateKind uint8

const (
	gateSwitches gateKind = iota + 1 // turns something on and off (tableFeatures)
	gateAlwaysOn                     // what it turns on is always on
	gateNotBuilt                     // what it turns on is not there
)

// featureGates are the gates of Antrea v1.15 and of those up to v2.7
// (pkg/features/antrea_features.go), with the two that stand for all of a stage.
var featureGates = map[string]gateKind{
	"AntreaIPAM":           gateSwitches,
	"AntreaPolicy":         gateSwitches,
	"AntreaProxy":          gateSwitches,
	"Egress":               gateSwitches,
	"EgressTrafficShaping": gateSwitches,
	"ExternalNode":         gateSwitches,
	"L7NetworkPolicy":      gateSwitches,
	"LoadBalancerModeDSR":  gateSwitches,
	"Multicast":            gateSwitches,
	"TrafficControl":       gateSwitches,

	"EndpointSlice":                 gateAlwaysOn,
	"NFTablesHostNetworkMode":       gateAlwaysOn,
	"NetworkPolicyStats":            gateAlwaysOn, // get policies, and the metrics of policies
	"PreferSameTrafficDistribution": gateAlwaysOn,
	"ServiceTrafficDistribution":    gateAlwaysOn,
	"TopologyAwareHints":            gateAlwaysOn,
	"Traceflow":                     gateAlwaysOn,

	"AdminNetworkPolicy":          gateNotBuilt,
	"AllAlpha":                    gateNotBuilt,
	"AllBeta":                     gateNotBuilt,
	"AntreaNodeConfig":            gateNotBuilt,
	"BGPPolicy":                   gateNotBuilt,
	"CleanupStaleUDPSvcConntrack": gateNotBuilt,
	"ClusterNetworkPolicy":        gateNotBuilt, // that of policy.networking.k8s.io
	"EgressSeparateSubnet":        gateNotBuilt,
	"FlowExporter":                gateNotBuilt,
	"IPsecCertAuth":               gateNotBuilt,
	"L7FlowExporter":              gateNotBuilt,
	"Multicluster":                gateNotBuilt,
	"NodeIPAM":                    gateNotBuilt,
	"NodeLatencyMonitor":          gateNotBuilt,
	"NodeNetworkPolicy":           gateNotBuilt,
	"NodePortLocal":               gateNotBuilt,
	"PacketCapture":               gateNotBuilt,
	"SecondaryNetwork":            gateNotBuilt,
	"ServiceExternalIP":           gateNotBuilt,
	"SupportBundleCollection":     gateNotBuilt,
}

// switchingGates are the gates that turn something on and off, in order.
func switchingGates() []string {
	var names []string
	for name, kind := range featureGates {
		if kind == gateSwitches {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// FeatureFault is the fault of a feature gate that is set to on; "" when nothing
// is. A gate of something that is not built may be false, and one of something that is
// always on may be true.
func FeatureFault(name string, on bool) string {
	switch kind := featureGates[name]; {
	case kind == gateAlwaysOn && !on:
		return "antrail has no switch for this feature of Antrea: it is always on; remove the gate"
	case kind == gateNotBuilt && on:
		return "antrail does not have this feature of Antrea; remove the gate, or set it to false"
	case kind == 0:
		meant := flow.Suggest(name, slices.Collect(maps.Keys(featureGates)))
		if meant == "" {
			meant = "; antrail has " + strings.Join(switchingGates(), ", ")
		}
		return "there is no such feature gate" + meant
	}
	return ""
}

// DSRFault is the fault of a load balancer mode of all Services; "" when nothing
// is. Mode dsr needs the gate LoadBalancerModeDSR, as in Antrea: without it, all of them
// would be answered as in mode nat.
func DSRFault(mode string, features map[string]bool) string {
	if mode == "dsr" && !features["LoadBalancerModeDSR"] {
		return "mode dsr needs features: {LoadBalancerModeDSR: true}"
	}
	return ""
}

// MulticastFault is the fault of the gate Multicast on a Node; "" when nothing is. Packets
// of groups go to other Nodes through the tunnel alone.
func MulticastFault(mode tables.EncapMode, features map[string]bool) string {
	if features["Multicast"] && mode != tables.Encap {
		return "needs trafficEncapMode encap: packets of groups go to other Nodes through the tunnel"
	}
	return ""
}

// features checks the feature gates of a NodeConfig.
func (c *check) features(in map[string]bool) map[string]bool {
	at := specAt.Child("features")
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if fault := FeatureFault(name, in[name]); fault != "" {
			c.invalid(at.Key(Clip(name)), in[name], "%s", fault)
		}
	}
	return maps.Clone(in)
}
