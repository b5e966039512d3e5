package manifest

import "github.com/antrail/antrail/control/cluster"

// readers are the published types that are read. If Antrea published a kind in several versions with
// the same fields, each is read.
var readers = map[typeName]reader{
	{"antrail.io/v1alpha1", "NodeConfig"}:     read(cluster.KindNodeConfig, clusterWide, decodeNodeConfig),
	{"v1", "Node"}:                            read(cluster.KindNode, clusterWide, decodeNode),
	{"v1", "Namespace"}:                       read(cluster.KindNamespace, clusterWide, decodeNamespace),
	{"v1", "Pod"}:                             read(cluster.KindPod, namespaced, decodePod),
	{antreaV1alpha2, "ExternalEntity"}:        read(cluster.KindExternalEntity, namespaced, decodeExternalEntity),
	{antreaV1alpha1, "ExternalNode"}:          read(cluster.KindExternalEntity, namespaced, decodeExternalNode),
	{"v1", "Service"}:                         read(cluster.KindService, namespaced, decodeService),
	{"discovery.k8s.io/v1", "EndpointSlice"}:  read(cluster.KindEndpointSlice, namespaced, decodeEndpointSlice),
	{"networking.k8s.io/v1", "NetworkPolicy"}: read(cluster.KindNetworkPolicy, namespaced, decodeNetworkPolicy),
	{antreaV1beta1, "NetworkPolicy"}:          read(cluster.KindAntreaNetworkPolicy, namespaced, decodeAntreaPolicy),
	{antreaV1alpha1, "NetworkPolicy"}:         read(cluster.KindAntreaNetworkPolicy, namespaced, decodeAntreaPolicy),
	{antreaV1beta1, "ClusterNetworkPolicy"}:   read(cluster.KindClusterNetworkPolicy, clusterWide, decodeAntreaPolicy),
	{antreaV1alpha1, "ClusterNetworkPolicy"}:  read(cluster.KindClusterNetworkPolicy, clusterWide, decodeAntreaPolicy),
	{antreaV1beta1, "Tier"}:                   read(cluster.KindTier, clusterWide, decodeTier),
	{antreaV1alpha1, "Tier"}:                  read(cluster.KindTier, clusterWide, decodeTier),
	{antreaV1beta1, "ClusterGroup"}:           read(cluster.KindClusterGroup, clusterWide, decodeGroup),
	{antreaV1alpha3, "ClusterGroup"}:          read(cluster.KindClusterGroup, clusterWide, decodeGroup),
	{antreaV1beta1, "Group"}:                  read(cluster.KindGroup, namespaced, decodeGroup),
	{antreaV1alpha3, "Group"}:                 read(cluster.KindGroup, namespaced, decodeGroup),
	{antreaV1beta1, "Egress"}:                 read(cluster.KindEgress, clusterWide, decodeEgress),
	{antreaV1alpha2, "Egress"}:                read(cluster.KindEgress, clusterWide, decodeEgress),
	{antreaV1beta1, "ExternalIPPool"}:         read(cluster.KindExternalIPPool, clusterWide, decodeExternalIPPool),
	{antreaV1alpha2, "ExternalIPPool"}:        read(cluster.KindExternalIPPool, clusterWide, decodeExternalIPPool),
	{antreaV1alpha2, "TrafficControl"}:        read(cluster.KindTrafficControl, clusterWide, decodeTrafficControl),
	{antreaV1beta1, "Traceflow"}:              read(cluster.KindTraceflow, clusterWide, decodeTraceflow),
	{antreaV1alpha1, "Traceflow"}:             read(cluster.KindTraceflow, clusterWide, decodeTraceflow),
}

// Versions of Antrea's API group.
const (
	antreaV1alpha1 = "crd.antrea.io/v1alpha1"
	antreaV1alpha2 = "crd.antrea.io/v1alpha2"
	antreaV1alpha3 = "crd.antrea.io/v1alpha3"
	antreaV1beta1  = "crd.antrea.io/v1beta1"
)
