from numjet.core import lowering as low

def fuse(build, graph):
    steps = []
    for node in graph.nodes:
        if type(node.rule) is low.Region:
            steps.extend(build.region(node))
        else:
            steps.append(build.host(node))
    return steps
