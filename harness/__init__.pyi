from harness.api import (
    Results as Results,
)
from harness.api import (
    advise as advise,
)
from harness.api import (
    calibrate as calibrate,
)
from harness.api import (
    encode as encode,
)
from harness.api import (
    evaluate as evaluate,
)
from harness.api import (
    experiment as experiment,
)
from harness.api import (
    import_pages as import_pages,
)
from harness.api import (
    import_vectors as import_vectors,
)
from harness.api import (
    leaderboard as leaderboard,
)
from harness.api import (
    load_backbone as load_backbone,
)
from harness.api import (
    load_benchmark as load_benchmark,
)
from harness.api import (
    load_index as load_index,
)
from harness.api import (
    load_run as load_run,
)
from harness.api import (
    plan as plan,
)
from harness.api import (
    reproduce as reproduce,
)
from harness.api import (
    settings as settings,
)
from harness.api import (
    show as show,
)
from harness.api import (
    submit as submit,
)
from harness.api import (
    validate as validate,
)
from harness.api import (
    verify_backbone as verify_backbone,
)
from harness.api import (
    write_index as write_index,
)

__version__: str
